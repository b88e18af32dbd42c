package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// childMachine opens the database in a child, which ends without closing it.
func childMachine(path, text string) (*engine.Engine, *engine.Machine, error) {
	store, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return nil, nil, err
	}
	def, err := definitions.Parse("test.yaml", []byte(text))
	if err != nil {
		return nil, nil, err
	}
	eng, err := engine.New(store)
	if err != nil {
		return nil, nil, err
	}
	m, err := eng.Machine(context.Background(), def)
	return eng, m, err
}

func init() {
	// share flips its own row for the time it is told, and says how often, and how late
	// it returned at worst from a call that it gave up. (A call that has the lock is
	// not interrupted: it takes as long as the disk does.)
	children["share"] = func(path string) error {
		_, m, err := childMachine(path, lampText)
		if err != nil {
			return err
		}
		say("ready")
		var id string
		var run int64
		if _, err := fmt.Scanln(&id, &run); err != nil {
			return err
		}
		overslept := oversleeping()
		transitions := []string{"switch_on", "switch_off"}
		var late time.Duration
		n := 0
		for end := time.Now().Add(time.Duration(run)); time.Now().Before(end); {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			deadline, _ := ctx.Deadline()
			_, err := m.Fire(ctx, transitions[n%2], id, nil)
			after := time.Since(deadline)
			cancel()
			switch {
			case err == nil:
				n++
			case errors.Is(err, context.DeadlineExceeded):
				late = max(late, after)
			default:
				return err
			}
		}
		say("%d %d %d", n, late.Milliseconds(), overslept().Milliseconds())
		return nil
	}
}

// oversleeping measures, until the function it returns is called, by how much a sleep of
// a millisecond lasts longer at worst: what a busy machine adds to every deadline.
func oversleeping() (stop func() time.Duration) {
	end, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			start := time.Now()
			select {
			case <-end:
				worst <- longest
				return
			case <-time.After(time.Millisecond):
				longest = max(longest, time.Since(start)-time.Millisecond)
			}
		}
	}()
	return func() time.Duration { close(end); return <-worst }
}

// Four processes on one file, with durable commits: each gets its share, and
// deadlines hold.
func TestSeveralProcesses(t *testing.T) { //nolint:paralleltest // it measures
	path := filepath.Join(t.TempDir(), "x.db")
	store := openAt(t, path)
	m := machineOn(t, store, lampText)
	run := time.Second
	if *long {
		run = 10 * time.Second
	}
	var kids []*talker
	for i := range 4 {
		mustCreate(t, m, fmtInt(i))
		kids = append(kids, startChild(t, "share", path))
	}
	for i, k := range kids {
		if line, ok := k.hear(); !ok || line != "ready" {
			t.Fatalf("child %d said %q", i, line)
		}
	}
	for i, k := range kids {
		if _, err := fmt.Fprintln(k.in, i, int64(run)); err != nil {
			t.Fatal(err)
		}
	}
	var counts []int
	var late, busy int
	for i, k := range kids {
		line, _ := k.hear()
		var n, ms, overslept int
		if _, err := fmt.Sscan(line, &n, &ms, &overslept); err != nil {
			t.Fatalf("child %d said %q: %v", i, line, err)
		}
		counts, late, busy = append(counts, n), max(late, ms), max(busy, overslept)
		if e, err := m.Get(context.Background(), fmtInt(i)); err != nil || e.Version != int64(n+1) {
			t.Errorf("child %d had %d calls acknowledged, its row is %+v, %v", i, n, e, err)
		}
	}
	slowest, fastest := slices.Min(counts), slices.Max(counts)
	t.Logf("calls per process %v in %v; latest return %d ms after its deadline, latest timer %d ms", counts, run, late, busy)
	if slowest*5 < fastest {
		t.Errorf("calls per process %v: the slowest has less than a fifth of the fastest", counts)
	}
	if late > 50+busy {
		t.Errorf("a call returned %d ms after its deadline, want at most 50 and the machine's own %d", late, busy)
	}
}

// Opening while another process holds the lock waits for it.
func TestOpenWhileLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	store := openAt(t, path)
	machineOn(t, store, lampText)
	tx := store.DB().MustBegin()
	defer tx.Rollback() //nolint:errcheck // its end is the test
	if _, err := tx.Exec("CREATE TABLE x (y)"); err != nil {
		t.Fatal(err)
	}
	second := openAt(t, path, sqlite.WithWait(50*time.Millisecond))
	eng, err := engine.New(second)
	if err != nil {
		t.Fatal(err)
	}
	m, err := eng.Machine(context.Background(), define(t, lampText))
	if err != nil {
		t.Fatalf("binding while another holds the writer: %v", err)
	}
	if _, err := m.Create(context.Background(), engine.Row{"id": "l"}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("Create while another holds the writer: %v, want ErrBusy", err)
	}
	if err := second.Migrate(context.Background(), define(t, strings.Replace(lampText, "lamp", "other", 2))); err == nil {
		t.Error("Migrate while another holds the writer must not succeed")
	}
}
