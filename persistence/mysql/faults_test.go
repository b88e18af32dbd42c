package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
)

func serverError(number uint16, message string) error {
	return &driver.MySQLError{Number: number, Message: message}
}

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want engine.Class
	}{
		"deadlock":                   {serverError(1213, "Deadlock found"), engine.ClassRetryable},
		"lock wait":                  {serverError(1205, "Lock wait timeout"), engine.ClassRetryable},
		"newer than the snapshot":    {serverError(1020, "Record has changed"), engine.ClassRetryable},
		"KILL QUERY":                 {serverError(1317, "interrupted"), engine.ClassRetryable},
		"max_statement_time":         {serverError(1969, "max_statement_time exceeded"), engine.ClassRetryable},
		"too many connections":       {serverError(1040, "Too many connections"), engine.ClassRetryable},
		"Galera not ready":           {serverError(1047, "WSREP"), engine.ClassRetryable},
		"key on MariaDB":             {serverError(1062, "Duplicate entry 'order-o-1-k' for key 'fsmgen_key'"), engine.ClassDuplicateKey},
		"key on MySQL":               {serverError(1062, "Duplicate entry 'order-o-1-k' for key 'fsm_journal.fsmgen_key'"), engine.ClassDuplicateKey},
		"version":                    {serverError(1062, "Duplicate entry 'order-o-1-2' for key 'fsmgen_version'"), engine.ClassVersionTaken},
		"a value that names the key": {serverError(1062, "Duplicate entry 'x' for key 'fsmgen_key'' for key 'email'"), engine.ClassConstraint},
		"primary key":                {serverError(1062, "Duplicate entry 'o-1' for key 'PRIMARY'"), engine.ClassConstraint},
		"CHECK on MariaDB":           {serverError(4025, "CONSTRAINT failed"), engine.ClassConstraint},
		"CHECK on MySQL":             {serverError(3819, "Check constraint is violated"), engine.ClassConstraint},
		"foreign key":                {serverError(1452, "a foreign key constraint fails"), engine.ClassConstraint},
		"NOT NULL":                   {serverError(1048, "cannot be null"), engine.ClassFatal},
		"syntax":                     {serverError(1064, "syntax"), engine.ClassFatal},
		"no table":                   {serverError(1146, "doesn't exist"), engine.ClassFatal},
		"collations":                 {serverError(1267, "Illegal mix"), engine.ClassFatal},
		"too long":                   {serverError(1406, "Data too long"), engine.ClassFatal},
		"read-only":                  {serverError(1290, "--read-only"), engine.ClassFatal},
		"COMMIT failed":              {serverError(1180, "Got error during COMMIT"), engine.ClassUnknown},
		"shutdown":                   {serverError(1053, "Server shutdown in progress"), engine.ClassUnknown},
		"broken":                     {driver.ErrInvalidConn, engine.ClassUnknown},
		"ErrBadConn":                 {sqldriver.ErrBadConn, engine.ClassUnknown},
		"read":                       {&net.OpError{Op: "read", Err: io.EOF}, engine.ClassUnknown},
		"dial":                       {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, engine.ClassRetryable},
		"deadline":                   {context.DeadlineExceeded, engine.ClassUnknown},
		"something else":             {errors.New("mysql: something else"), engine.ClassFatal},
	} {
		if got := (dialect{}).Classify(c.err, "fsm_journal"); got != c.want {
			t.Errorf("%s: class %v, want %v", name, got, c.want)
		}
	}
}

// TestCommitting: what interrupts a statement that carries its COMMIT may have come
// after it.
func TestCommitting(t *testing.T) {
	for _, number := range []uint16{1317, 1969, 3024, 1053, 1180, 1927} {
		if got := committing(serverError(number, "")); got != engine.ClassUnknown {
			t.Errorf("%d at COMMIT: class %v", number, got)
		}
	}
	for _, number := range []uint16{1213, 1205, 1020} {
		if got := committing(serverError(number, "")); got != engine.ClassRetryable {
			t.Errorf("%d at COMMIT: class %v", number, got)
		}
	}
}

// isCall fits the statement that carries a transition.
func isCall(e recorder.Event) bool {
	return e.Op == "query" && strings.HasPrefix(e.Text, "BEGIN NOT ATOMIC DECLARE")
}

func isText(text string) func(recorder.Event) bool {
	return func(e recorder.Event) bool { return e.Op == "exec" && strings.HasPrefix(e.Text, text) }
}

// TestRepeated: what certainly was not applied is run again, from the start; what may
// have been is too, and its key tells.
func TestRepeated(t *testing.T) {
	for name, err := range map[string]error{
		"1213": serverError(1213, "Deadlock found"), "1205": serverError(1205, "Lock wait timeout"), "1020": serverError(1020, "Record has changed"),
		"1317": serverError(1317, "interrupted"), "1969": serverError(1969, "max_statement_time"), "broken": driver.ErrInvalidConn, "ErrBadConn": sqldriver.ErrBadConn,
	} {
		t.Run("before/"+name, func(t *testing.T) { testRepeated(t, err, false) })
		t.Run("after/"+name, func(t *testing.T) { testRepeated(t, err, true) })
	}
}

func testRepeated(t *testing.T, fault error, applied bool) {
	r, log := recorded(t, order)
	r.create(t, "o-1", nil)
	log.Reset()
	f := recorder.Once(isCall, func(recorder.Event) error { return fault })
	if applied {
		log.Inject(recorder.Fault{After: f})
	} else {
		log.Inject(recorder.Fault{Before: f})
	}
	if class := classify(fault); applied && committing(fault) == class && class != engine.ClassUnknown {
		t.Skipf("%v says that nothing was applied", fault)
	}
	r.fire(t, engine.Applied, "pay", "o-1", engine.Args{"payment_ref": "x"})
	if n := r.entries(t, "o-1"); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	if status, version := r.where(t, "o-1"); status != "paid" || version != 2 {
		t.Errorf("the row is %s at version %d", status, version)
	}
	r.whole(t)
}

// TestErrorAtCommit: a call on a held row is a transaction of its own; an error of its
// COMMIT, as Galera gives it, is a retry, and a lost answer is settled by the key.
// CASES 25, 21.
func TestErrorAtCommit(t *testing.T) {
	deadlock := serverError(1213, "Deadlock found when trying to get lock")
	t.Run("Galera", func(t *testing.T) {
		r, log := recorded(t, order)
		r.create(t, "o-1", nil)
		held := r.hold(t, "o-1")
		log.Reset()
		fails := 2
		log.Inject(recorder.Fault{Before: func(e recorder.Event) error {
			if (e.Op == "exec" && e.Text == "COMMIT" || e.Text == "ROLLBACK") && fails > 0 {
				fails--
				return deadlock
			}
			return nil
		}})
		done := r.inBackground(t, "pay", "o-1", engine.Args{"payment_ref": "x"})
		time.Sleep(100 * time.Millisecond)
		held()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if fails != 0 {
			t.Fatalf("%d errors were not given", fails)
		}
		if n := r.entries(t, "o-1"); n != 2 {
			t.Errorf("%d entries, want 2", n)
		}
		r.whole(t)
	})
	t.Run("always", func(t *testing.T) {
		r, log := recorded(t, order)
		r.create(t, "o-1", nil)
		log.Inject(recorder.Fault{Before: func(e recorder.Event) error {
			if isCall(e) {
				return deadlock
			}
			return nil
		}})
		_, err := r.m.Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "x"})
		if !errors.Is(err, engine.ErrBusy) || !errors.Is(err, deadlock) {
			t.Fatalf("%v, want ErrBusy with the server's error", err)
		}
		r.idle(t)
	})
	t.Run("answer lost", func(t *testing.T) {
		r, log := recorded(t, order)
		r.create(t, "o-1", nil)
		held := r.hold(t, "o-1")
		log.Inject(recorder.Fault{After: recorder.Once(func(e recorder.Event) bool { return e.Op == "exec" && e.Text == "COMMIT" },
			func(recorder.Event) error { return sqldriver.ErrBadConn })})
		done := r.inBackground(t, "pay", "o-1", engine.Args{"payment_ref": "x"})
		time.Sleep(100 * time.Millisecond)
		held()
		check(t, <-done)
		if n := r.entries(t, "o-1"); n != 2 {
			t.Errorf("%d entries, want 2", n)
		}
	})
}

// hold locks a row as somebody else would, until the function it gives is called.
func (r *rig) hold(t *testing.T, id string) (free func()) {
	t.Helper()
	db, err := pool(r.cfg)
	check(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	_, err = tx.ExecContext(t.Context(), "SELECT * FROM `"+r.def.Table.Name+"` WHERE id = '"+id+"' FOR UPDATE")
	check(t, err)
	return func() {
		check(t, tx.Rollback())
		check(t, db.Close())
	}
}

func (r *rig) inBackground(t *testing.T, transition, id string, args engine.Args, opts ...engine.CallOption) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := r.m.Fire(t.Context(), transition, id, args, opts...)
		done <- err
	}()
	return done
}

// TestBareUnknown: without a journal only a graph without way back, or a version, can
// tell what happened.
func TestBareUnknown(t *testing.T) {
	r, log := recorded(t, lamp)
	r.create(t, "l", nil)
	lose := func() {
		log.Inject(recorder.Fault{After: recorder.Once(func(e recorder.Event) bool { return e.Op == "exec" && strings.Contains(e.Text, "UPDATE") },
			func(recorder.Event) error { return sqldriver.ErrBadConn })})
	}
	lose()
	_, err := r.m.Fire(t.Context(), "switch_on", "l", nil)
	if !errors.Is(err, engine.ErrUnknownOutcome) {
		t.Fatalf("%v, want ErrUnknownOutcome", err)
	}
	lose()
	res, err := r.m.Fire(t.Context(), "switch_off", "l", nil, engine.WithVersion(2))
	check(t, err)
	if status, version := r.where(t, "l"); status != "off" || version != 3 {
		t.Errorf("the row is %s at version %d after %v", status, version, res.Outcome)
	}
}

// TestZombie is DBFACTS H.9: the row is locked, the deadline passes, the lock is
// freed. What was reported stays true.
func TestZombie(t *testing.T) {
	for name, yaml := range map[string]string{"journaled": order, "bare": lamp} {
		t.Run(name, func(t *testing.T) {
			r := open(t, yaml)
			transition, args := "switch_on", engine.Args(nil)
			if name == "journaled" {
				transition, args = "pay", engine.Args{"payment_ref": "x"}
			}
			for i := range rounds(3, 50) {
				id := rowID(i)
				r.create(t, id, nil)
				free := r.hold(t, id)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				begun := time.Now()
				_, err := r.m.Fire(ctx, transition, id, args)
				cancel()
				if took := time.Since(begun); took > 800*time.Millisecond {
					t.Errorf("a deadline of 100ms returned after %v", took)
				}
				if !errors.Is(err, engine.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want ErrBusy: nothing was applied", err)
				}
				free()
				time.Sleep(100 * time.Millisecond)
				if _, version := r.where(t, id); version != 1 {
					t.Fatalf("reported %v, and the row is at version %d", err, version)
				}
			}
			r.idle(t)
		})
	}
}

// TestHeldTooLong: a wait for a row that ran into its limit is not waited again.
func TestHeldTooLong(t *testing.T) {
	r := open(t, order, WithLockWait(time.Second))
	r.create(t, "o-1", nil)
	free := r.hold(t, "o-1")
	defer free()
	for _, ctx := range []context.Context{t.Context(), context.Background()} {
		begun := time.Now()
		_, err := r.m.Fire(ctx, "pay", "o-1", engine.Args{"payment_ref": "x"})
		if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "another transaction holds the row") {
			t.Errorf("%v, want ErrBusy that says who is in the way", err)
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("waited %v", took)
		}
	}
	r.idle(t)
}
