//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fsmgen/fsmgen/engine"
)

// private is a server of the test's own, in a directory of its own.
type private struct {
	dir  string
	port int
	as   *syscall.SysProcAttr
	cmd  *exec.Cmd
}

// startPrivate makes a cluster and starts it. Where the server's programs are missing,
// or nobody unprivileged is there to run them, the test is skipped.
func startPrivate(t *testing.T) *private {
	t.Helper()
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no server of our own to kill: put PostgreSQL's %s into the PATH", program)
		}
	}
	dir, err := os.MkdirTemp("", "fsmgen-pg") //nolint:usetesting // another user must get there
	check(t, err)
	p := &private{dir: filepath.Join(dir, "data"), as: unprivileged(t, dir)}
	t.Cleanup(func() {
		p.kill(t)
		check(t, os.RemoveAll(dir))
	})
	initdb := exec.CommandContext(t.Context(), "initdb", "-D", p.dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = p.as, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Skipf("no server of our own to kill: initdb: %v\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p.port = listener.Addr().(*net.TCPAddr).Port
	check(t, listener.Close())
	p.start(t)
	return p
}

// unprivileged lets root run the server as somebody else: PostgreSQL refuses root.
func unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		check(t, os.Chown(dir, uid, gid))
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids of the system
	}
	t.Skip("no server of our own to kill: root has no user postgres or nobody to run it as")
	return nil
}

func (p *private) dsn() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", p.port)
}

// start starts the server and waits until it answers. After a crash it may have to wait
// for the last of the processes that were killed.
func (p *private) start(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		cmd := exec.Command("postgres", "-D", p.dir, "-p", strconv.Itoa(p.port), "-k", "", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=50")
		cmd.SysProcAttr, cmd.Dir = p.as, p.dir
		check(t, cmd.Start())
		p.cmd = cmd
		exited := make(chan struct{})
		go func() { _ = cmd.Wait(); close(exited) }()
		for time.Now().Before(end) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			conn, err := pgx.Connect(ctx, p.dsn())
			if err == nil {
				_ = conn.Close(ctx)
				cancel()
				return
			}
			cancel()
			select {
			case <-exited:
			case <-time.After(50 * time.Millisecond):
				continue
			}
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the server does not start")
}

// kill ends the server and every process of it at once, as a crash of the machine's
// kernel would, but for the disk.
func (p *private) kill(t *testing.T) {
	t.Helper()
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	pid := p.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // where there is no such file they end by themselves
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// ledger is what one worker was told.
type ledger struct {
	acked   map[string]int64 // key -> version
	errored []string
}

// Invariant H.7: the server is killed under load, again and again. Nothing that was
// acknowledged is lost or doubled, and every call that ended in an error is settled
// when it is repeated under its key.
func TestKilledServer(t *testing.T) {
	p := startPrivate(t)
	store, err := Open(t.Context(), p.dsn(), WithConnections(8))
	check(t, err)
	r := bind(t, p.dsn(), store, parse(t, counter))
	const workers = 8
	books := make([]ledger, workers)
	for w := range workers {
		r.create(t, fmt.Sprint(w), nil)
		books[w].acked = map[string]int64{}
	}
	var serial atomic.Int64
	for range rounds(3, 20) {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() { books[w].work(t, r, fmt.Sprint(w), &serial, stop) })
		}
		time.Sleep(400 * time.Millisecond)
		p.kill(t)
		time.Sleep(100 * time.Millisecond)
		close(stop)
		wg.Wait()
		p.start(t)
	}
	acked, errored, applied := 0, 0, 0
	for w := range workers {
		id := fmt.Sprint(w)
		acked += len(books[w].acked)
		errored += len(books[w].errored)
		for _, key := range books[w].errored {
			res, _ := insist(t, 5*time.Second, key, func(ctx context.Context, opts ...engine.CallOption) (engine.Result, error) {
				return r.m.Fire(ctx, "add", id, engine.Args{"by": 1}, opts...)
			})
			if res.Outcome == engine.Replayed {
				applied++
			}
			if _, twice := books[w].acked[key]; twice {
				t.Errorf("key %s was acknowledged and failed", key)
			}
			books[w].acked[key] = res.Version
		}
		books[w].hold(t, r, id)
	}
	r.whole(t)
	t.Logf("%d calls acknowledged, %d ended in an error, of which %d had been applied", acked, errored, applied)
}

func (b *ledger) work(t *testing.T, r *rig, id string, serial *atomic.Int64, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		key := fmt.Sprint("k", serial.Add(1))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		res, err := r.m.Fire(ctx, "add", id, engine.Args{"by": 1}, engine.WithKey(key))
		cancel()
		switch {
		case err == nil:
			b.acked[key] = res.Version
		case errors.Is(err, engine.ErrBusy), errors.Is(err, engine.ErrUnknownOutcome), errors.Is(err, context.DeadlineExceeded):
			b.errored = append(b.errored, key)
		default:
			t.Errorf("an error of no kind that a dead server has: %v", err)
			b.errored = append(b.errored, key)
		}
	}
}

// hold compares what was told with what is there.
func (b *ledger) hold(t *testing.T, r *rig, id string) {
	t.Helper()
	entries, err := r.m.Journal(t.Context(), id)
	check(t, err)
	if len(entries) != len(b.acked)+1 {
		t.Errorf("row %s: %d entries for %d calls and the creation", id, len(entries), len(b.acked))
	}
	for _, e := range entries {
		if e.Transition != "" && b.acked[e.Key] != e.Version {
			t.Errorf("row %s: key %s is at version %d, %d was told", id, e.Key, e.Version, b.acked[e.Key])
		}
	}
	row, err := r.m.Get(t.Context(), id)
	check(t, err)
	if row.Row()["n"] != int64(len(b.acked)) {
		t.Errorf("row %s: %v added by %d calls", id, row.Row()["n"], len(b.acked))
	}
}
