package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
)

func writes(e recorder.Event) bool  { return strings.Contains(e.Text, "UPDATE") && e.Op != "prepare" }
func commits(e recorder.Event) bool { return e.Op == "commit" }

// lose makes an event that fits fail once, after it was done.
func lose(fits func(recorder.Event) bool) recorder.Fault {
	return recorder.Fault{After: recorder.Once(fits, func(recorder.Event) error { return driver.ErrBadConn })}
}

// The driver says "bad connection" after it has run the statement: database/sql would
// send it again.
func TestBadConnectionAfterTheWrite(t *testing.T) {
	r, log := recorded(t, counter)
	for _, c := range []struct {
		id, transition string
		args           engine.Args
		opts           []engine.CallOption
	}{
		{"1", "next", nil, nil},
		{"2", "add", engine.Args{"by": 3}, []engine.CallOption{engine.WithKey("k")}},
		{"3", "next", nil, []engine.CallOption{engine.WithVersion(1)}},
	} {
		r.create(t, c.id, nil)
		log.Reset()
		log.Inject(lose(writes))
		res, err := r.m.Fire(t.Context(), c.transition, c.id, c.args, c.opts...)
		check(t, err)
		if res.Outcome != engine.Applied || res.Version != 2 {
			t.Errorf("%s: %+v", c.id, res)
		}
		if n := len(log.Texts()); n != 3 {
			t.Errorf("%s: %d statements, want the write twice and the diagnosis", c.id, n)
		}
		log.Inject(recorder.Fault{})
	}
	log.Inject(recorder.Fault{After: recorder.Once(func(e recorder.Event) bool { return strings.Contains(e.Text, "INSERT") }, func(recorder.Event) error { return driver.ErrBadConn })})
	res, err := r.m.Create(t.Context(), engine.Row{"id": "4"})
	check(t, err)
	if res.Outcome != engine.Applied || res.Version != 1 {
		t.Errorf("create: %+v", res)
	}
	log.Inject(recorder.Fault{})
	r.whole(t)
}

// A success that comes after the context has ended proves nothing: the cancel request
// ends a commit's wait for its standby, and the server then says that it succeeded.
func TestSuccessAfterTheContextEnded(t *testing.T) {
	grouped(t, func(t *testing.T, opts ...Option) {
		r, log := recorded(t, counter, opts...)
		for i := range 10 {
			id := fmt.Sprint(i)
			r.create(t, id, nil)
			ctx, cancel := context.WithCancel(t.Context())
			log.Inject(recorder.Fault{After: recorder.Once(writes, func(recorder.Event) error { cancel(); return nil })})
			_, err := r.m.Fire(ctx, "next", id, nil)
			var e *engine.Error
			if !errors.Is(err, engine.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
				t.Fatalf("%v, want ErrUnknownOutcome", err)
			}
			log.Inject(recorder.Fault{})
			res, err := r.m.Fire(t.Context(), "next", id, nil, engine.WithKey(e.Key))
			check(t, err)
			if res.Outcome != engine.Replayed || res.Version != 2 {
				t.Errorf("%+v", res)
			}
			cancel()
		}
		r.whole(t)
	})
}

// A machine without journal cannot settle it, unless a version was named.
func TestBadConnectionAfterABareWrite(t *testing.T) {
	r, log := recorded(t, lamp)
	r.create(t, "1", nil)
	log.Reset()
	log.Inject(lose(writes))
	if _, err := r.m.Fire(t.Context(), "switch_on", "1", nil); !errors.Is(err, engine.ErrUnknownOutcome) {
		t.Errorf("%v, want ErrUnknownOutcome", err)
	}
	if n := len(log.Texts()); n != 1 {
		t.Errorf("%d statements, want 1: it may have run", n)
	}
	log.Inject(lose(writes))
	res, err := r.m.Fire(t.Context(), "switch_off", "1", nil, engine.WithVersion(2))
	check(t, err)
	if !res.Outcome.Duplicate() || res.Version != 3 {
		t.Errorf("%+v", res)
	}
}

func TestAnswerOfCommitIsLost(t *testing.T) {
	r, log := recorded(t, counter)
	r.create(t, "1", nil)
	log.Inject(lose(commits))
	runs := 0
	add := func(ctx context.Context, tx engine.Tx) error {
		runs++
		_, err := r.m.In(tx).Fire(ctx, "add", "1", engine.Args{"by": 1}, engine.WithKey("k"))
		return err
	}
	if err := r.eng.InTx(t.Context(), add); !errors.Is(err, engine.ErrUnknownOutcome) {
		t.Errorf("%v, want ErrUnknownOutcome", err)
	}
	if runs != 1 {
		t.Errorf("run %d times", runs)
	}
	check(t, r.eng.InTx(t.Context(), add)) // the key settles it
	row, err := r.m.Get(t.Context(), "1")
	check(t, err)
	if row.Row()["n"] != int64(1) {
		t.Errorf("n = %v", row.Row()["n"])
	}
	r.whole(t)
}

// withEffect gives next an effect and an after hook.
func (r *rig) withEffect(t testing.TB, effect func(ctx context.Context, tx engine.Tx, e engine.Event) error, after func()) *engine.Machine {
	t.Helper()
	def := *r.def
	def.Transitions = append(def.Transitions[:0:0], def.Transitions...)
	for i := range def.Transitions {
		if def.Transitions[i].Name == "next" || def.Transitions[i].Name == "pay" {
			def.Transitions[i].Effect, def.Transitions[i].After = "effect", "after"
		}
	}
	m, err := r.eng.Machine(t.Context(), &def, engine.Code{
		"effect": {Effect: effect},
		"after":  {After: func(context.Context, engine.Event) error { after(); return nil }},
	})
	check(t, err)
	return m
}

// COMMIT of a unit with an effect: a serialization failure undid it, a lost answer did
// not.
func TestCommitOfAUnitWithEffect(t *testing.T) {
	serialization := &pgconn.PgError{Severity: "ERROR", Code: "40001", Message: "could not serialize access"}
	for _, c := range []struct {
		name  string
		fault recorder.Fault
		runs  int
	}{
		{"fails", recorder.Fault{Before: recorder.Once(commits, func(recorder.Event) error { return serialization })}, 2},
		{"answer lost", lose(commits), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, log := recorded(t, counter)
			r.create(t, "1", nil)
			runs, told := 0, 0
			m := r.withEffect(t, func(context.Context, engine.Tx, engine.Event) error { runs++; return nil }, func() { told++ })
			log.Inject(c.fault)
			res, err := m.Fire(t.Context(), "next", "1", nil)
			check(t, err)
			if res.Outcome != engine.Applied || res.Version != 2 {
				t.Errorf("%+v", res)
			}
			if runs != c.runs || told > 1 {
				t.Errorf("effect ran %d times, want %d; after ran %d times", runs, c.runs, told)
			}
			log.Inject(recorder.Fault{})
			r.whole(t)
		})
	}
}

// TestWrappedDriver: behind an instrumentation the driver's pipeline is out of reach, and
// callers at once go each by itself, also those who queue up before anybody knows.
func TestWrappedDriver(t *testing.T) {
	r, log := recorded(t, order)
	const callers = 16
	for i := range callers {
		r.exec(t, "INSERT INTO orders (id, status) VALUES ($1, 'pending')", fmt.Sprint("o-", i))
	}
	fire := func(transition string, args engine.Args) {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if res, err := r.m.Fire(t.Context(), transition, fmt.Sprint("o-", i), args); err != nil || res.Outcome != engine.Applied {
					t.Errorf("%s %d: %v %v", transition, i, res.Outcome, err)
				}
			})
		}
		wg.Wait()
	}
	log.Inject(recorder.Fault{Before: recorder.Once(writes, func(recorder.Event) error {
		time.Sleep(50 * time.Millisecond) // the others queue up behind the first
		return nil
	})})
	fire("pay", engine.Args{"payment_ref": "x"})
	fire("ship", nil)
	r.idle(t)
}

// TestErrorOfABatch: an error of a member of a batch is told once.
func TestErrorOfABatch(t *testing.T) {
	r := open(t, order)
	const callers = 8
	r.exec(t, "ALTER TABLE orders ADD CONSTRAINT no_x CHECK (payment_ref <> 'x')")
	for i := range callers {
		r.create(t, fmt.Sprint("o-", i), nil)
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			_, err := r.m.Fire(t.Context(), "pay", fmt.Sprint("o-", i), engine.Args{"payment_ref": "x"})
			if err == nil || strings.Count(err.Error(), "SQLSTATE 23514") != 1 {
				t.Errorf("%v, want the constraint once", err)
			}
		})
	}
	wg.Wait()
	r.whole(t)
}
