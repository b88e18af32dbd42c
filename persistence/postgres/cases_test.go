package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

// Case 08: the caller rolls back, or commits; the after hook knows of neither before
// the caller says so.
func TestAfterHooksWaitForTheCallersCommit(t *testing.T) {
	r := open(t, order)
	seen := ""
	m := r.withEffect(t, func(context.Context, engine.Tx, engine.Event) error { return nil }, func() {
		row, err := r.m.Get(t.Context(), "1") // on another connection
		check(t, err)
		seen += row.State
	})
	r.create(t, "1", nil)
	for _, commit := range []bool{false, true} {
		tx := r.begin(t, 0)
		res, err := m.In(tx).Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
		check(t, err)
		if !commit {
			check(t, tx.Rollback())
			row, err := r.m.Get(t.Context(), "1")
			check(t, err)
			if seen != "" || row.State != "pending" || row.Version != 1 {
				t.Errorf("after the rollback: %q, %+v", seen, row)
			}
			continue
		}
		check(t, tx.Commit())
		check(t, res.AfterCommit(t.Context()))
		check(t, res.AfterCommit(t.Context()))
		if seen != "paid" {
			t.Errorf("the hook saw %q, want paid, once", seen)
		}
	}
	r.whole(t)
}

// Cases 16 and 19: an update that changes nothing but the version applies each time;
// a rolled back call leaves nothing behind that makes the next one wrong.
func TestVersionsAfterRollbackAndNoChange(t *testing.T) {
	r := open(t, counter)
	r.create(t, "1", nil)
	for i := range 2 {
		res, err := r.m.Fire(t.Context(), "add", "1", engine.Args{"by": 0}, engine.WithKey(fmt.Sprint(i)))
		check(t, err)
		if res.Outcome != engine.Applied || res.Version != int64(i+2) {
			t.Errorf("%+v", res)
		}
	}
	tx := r.begin(t, 0)
	_, err := r.m.In(tx).Fire(t.Context(), "next", "1", nil, engine.WithVersion(3))
	check(t, err)
	check(t, tx.Rollback())
	res, err := r.m.Fire(t.Context(), "next", "1", nil, engine.WithVersion(3))
	check(t, err)
	if res.Version != 4 {
		t.Errorf("%+v", res)
	}
	for range 2 {
		if _, err := r.m.Fire(t.Context(), "more", "1", nil, engine.WithVersion(3)); !errors.Is(err, engine.ErrConflict) {
			t.Errorf("a stale version: %v", err)
		}
	}
	r.whole(t)
}

// Case 32: an instant is an instant, whatever the zone of the session.
func TestTimesInOtherZones(t *testing.T) {
	base := servertest.PostgresSchema(t)
	for _, mode := range []string{"cache_statement", "simple_protocol"} {
		for _, zone := range []string{"Asia/Shanghai", "UTC", "America/New_York"} {
			store, err := Open(t.Context(), withParams(t, base, "timezone", zone, "default_query_exec_mode", mode, "datestyle", "SQL"))
			check(t, err)
			at := time.Date(2026, 3, 4, 8, 0, 0, 123456000, time.FixedZone("", 8*3600))
			r := bind(t, base, store, parse(t, order), engine.WithClock(func() time.Time { return at }))
			id := zone + mode
			r.create(t, id, nil)
			_, err = r.m.Fire(t.Context(), "pay", id, engine.Args{"payment_ref": "x"})
			check(t, err)
			row, err := r.m.Get(t.Context(), id)
			check(t, err)
			entries, err := r.m.Journal(t.Context(), id)
			check(t, err)
			if got := row.Row()["paid_at"]; got != at.UTC() || entries[1].At != at.UTC() {
				t.Errorf("%s: the row says %v, the journal %v; want %v", id, got, entries[1].At, at.UTC())
			}
			var due int
			check(t, r.store.DB().GetContext(t.Context(), &due, "SELECT count(*) FROM orders WHERE id = $1 AND paid_at <= $2", id, at))
			if due != 1 {
				t.Errorf("%s: not found as due", id)
			}
		}
	}
}

// Case 38: a key belongs to one row of one machine.
func TestScopeOfKeys(t *testing.T) {
	r := open(t, order)
	refunds := parse(t, "machine: refund\ntable: {name: refunds}\ninitial: new\nstates: {new: , done: {final: true}}\ntransitions: {pay: {from: new, to: done}}\n")
	check(t, r.store.Migrate(t.Context(), refunds))
	other, err := r.eng.Machine(t.Context(), refunds)
	check(t, err)
	r.create(t, "1", nil)
	r.create(t, "2", nil)
	_, err = other.Create(t.Context(), engine.Row{"id": "1"})
	check(t, err)
	fire := func(m *engine.Machine, transition, id, key string, args engine.Args) (engine.Result, error) {
		return m.Fire(t.Context(), transition, id, args, engine.WithKey(key))
	}
	for _, c := range []struct {
		m  *engine.Machine
		id string
	}{{r.m, "1"}, {r.m, "2"}, {other, "1"}} {
		var args engine.Args
		if c.m == r.m {
			args = engine.Args{"payment_ref": "x"}
		}
		res, err := fire(c.m, "pay", c.id, "1", args)
		check(t, err)
		if res.Outcome != engine.Applied || res.ID != c.id {
			t.Errorf("%+v", res)
		}
	}
	if _, err := fire(r.m, "cancel", "1", "1", nil); !errors.Is(err, engine.ErrKeyReused) {
		t.Errorf("the same key for another transition: %v", err)
	}
	if _, err := fire(r.m, "cancel", "1", strings.Repeat("k", 300), nil); !errors.Is(err, engine.ErrInvalidArgs) {
		t.Errorf("a key of 300 bytes: %v", err)
	}
	for _, id := range []string{"a:b", "a"} {
		r.create(t, id, nil)
	}
	for id, key := range map[string]string{"a:b": "c", "a": "b:c"} {
		res, err := fire(r.m, "pay", id, key, engine.Args{"payment_ref": "x"})
		if err != nil || res.Outcome != engine.Applied {
			t.Errorf("%s %s: %+v, %v", id, key, res, err)
		}
	}
	r.whole(t)
}

// The commit is what counts, not the row that came back before it: a deferred
// constraint fails when everything was answered already.
func TestDeferredConstraint(t *testing.T) {
	grouped(t, func(t *testing.T, opts ...Option) {
		r := open(t, order, opts...)
		r.create(t, "1", nil)
		r.exec(t, `ALTER TABLE orders ADD CONSTRAINT once UNIQUE (payment_ref) DEFERRABLE INITIALLY DEFERRED`)
		r.create(t, "2", nil)
		ref := engine.Args{"payment_ref": "x"}
		_, err := r.m.Fire(t.Context(), "pay", "1", ref)
		check(t, err)
		res, err := r.m.Fire(t.Context(), "pay", "2", ref)
		if err == nil || !strings.Contains(err.Error(), "once") || errors.Is(err, engine.ErrBusy) || errors.Is(err, engine.ErrConflict) {
			t.Errorf("%+v, %v; want the constraint's own error", res, err)
		}
		r.whole(t)
	})
}

// Constraints of the user's table come back as they are.
func TestUsersConstraints(t *testing.T) {
	r := open(t, order)
	r.create(t, "1", nil)
	r.create(t, "2", nil)
	r.exec(t, `ALTER TABLE orders ADD CONSTRAINT lower CHECK (payment_ref = lower(payment_ref)), ADD CONSTRAINT once UNIQUE (payment_ref)`)
	_, err := r.m.Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
	check(t, err)
	for ref, constraint := range map[string]string{"X": "lower", "x": "once"} {
		_, err := r.m.Fire(t.Context(), "pay", "2", engine.Args{"payment_ref": ref})
		if err == nil || !strings.Contains(err.Error(), constraint) {
			t.Errorf("%q: %v, want constraint %s", ref, err, constraint)
		}
		for _, kind := range []error{engine.ErrBusy, engine.ErrConflict, engine.ErrRejected, engine.ErrUnknownOutcome} {
			if errors.Is(err, kind) {
				t.Errorf("%q is read as %v", ref, kind)
			}
		}
	}
	if _, err := r.m.Create(t.Context(), engine.Row{"id": "3", "payment_ref": "x"}); err == nil || !strings.Contains(err.Error(), "once") {
		t.Errorf("create: %v, want constraint once", err)
	}
	r.whole(t)
}

const unique = `
machine: ticket
table: {name: tickets}
fields:
  number: {type: string}
  seat: {type: string, nullable: true}
initial: new
states: {new: , used: {final: true}}
unique: [[number]]
transitions: {use: {from: new, to: used}}
`

// A declared unique key names the first row, also inside the caller's transaction; one
// that is not declared is the user's own.
func TestDeclaredUniqueKey(t *testing.T) {
	r := open(t, unique)
	r.exec(t, `ALTER TABLE tickets ADD CONSTRAINT seats UNIQUE (seat)`)
	r.create(t, "1", engine.Row{"number": "A", "seat": "s1"})
	forLevelsIn(t, r, func(t *testing.T, m *engine.Machine) {
		res, err := m.Create(t.Context(), engine.Row{"id": "2", "number": "A"})
		check(t, err)
		if res.Outcome != engine.AlreadyReached || res.ID != "1" {
			t.Errorf("%+v", res)
		}
		if _, err := m.Create(t.Context(), engine.Row{"id": "3", "number": "A", "seat": "s2"}); !errors.Is(err, engine.ErrMismatch) {
			t.Errorf("another seat: %v", err)
		}
	})
	if _, err := r.m.Create(t.Context(), engine.Row{"id": "4", "number": "B", "seat": "s1"}); err == nil || !strings.Contains(err.Error(), "seats") {
		t.Errorf("a unique index that is not declared: %v", err)
	}
	mu := make(chan struct{}, 1)
	applied := 0
	together(callers, func(i int) {
		res, err := r.m.Create(t.Context(), engine.Row{"id": fmt.Sprint("r", i), "number": "R"})
		mu <- struct{}{}
		defer func() { <-mu }()
		if err != nil {
			t.Error(err)
		}
		if res.Outcome == engine.Applied {
			applied++
		}
	})
	if applied != 1 {
		t.Errorf("%d rows of one number", applied)
	}
	r.whole(t)
}

// forLevelsIn runs a test outside of a transaction and inside of one that then commits.
func forLevelsIn(t *testing.T, r *rig, test func(t *testing.T, m *engine.Machine)) {
	t.Run("alone", func(t *testing.T) { test(t, r.m) })
	t.Run("in a transaction", func(t *testing.T) {
		tx := r.begin(t, 0)
		test(t, r.m.In(tx))
		usableTx(t, tx)
		check(t, tx.Commit())
	})
}

// JSON comes back as it was written, in rows and in the journal.
func TestJSONKeepsItsText(t *testing.T) {
	const yaml = `
machine: doc
table: {name: docs}
fields: {body: {type: json, nullable: true}}
initial: new
states: {new: , done: {final: true}}
transitions: {fill: {from: new, to: done, args: {body: json}, set: {body: args.body}}}
`
	testJSON(t, open(t, yaml), `{"b": 1.50, "a": [1e3, 12345678901234567890.5], "b2": "ü"}`)
	// jsonb orders keys and writes numbers its own way
	r := withTable(t, yaml, `CREATE TABLE docs (id text PRIMARY KEY, status text NOT NULL, version bigint NOT NULL, body jsonb)`)
	testJSON(t, r, `{"a": [1000, 12345678901234567890.5], "b": 1.50, "b2": "ü"}`)
}

func testJSON(t *testing.T, r *rig, want string) {
	t.Helper()
	const text = `{"b": 1.50, "a": [1e3, 12345678901234567890.5], "b2": "ü"}`
	r.create(t, "1", nil)
	_, err := r.m.Fire(t.Context(), "fill", "1", engine.Args{"body": json.RawMessage(text)}, engine.WithMeta(map[string]any{"n": json.Number("1.0")}))
	check(t, err)
	row, err := r.m.Get(t.Context(), "1")
	check(t, err)
	if got := fmt.Sprintf("%s", row.Row()["body"]); got != want {
		t.Errorf("the row holds %s", got)
	}
	entries, err := r.m.Journal(t.Context(), "1")
	check(t, err)
	if got := string(entries[1].Args); !strings.Contains(got, "1.50") || !strings.Contains(got, "12345678901234567890.5") || string(entries[1].Meta) != `{"n":1.0}` {
		t.Errorf("the journal holds %s and %s", got, entries[1].Meta)
	}
}

// The version the call would reach stands in the journal already: rows inserted by hand.
func TestJournalVersionTaken(t *testing.T) {
	r := open(t, order)
	r.create(t, "1", nil)
	_, err := r.m.Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
	check(t, err)
	r.exec(t, "UPDATE orders SET status = 'pending', version = 1")
	_, err = r.m.Fire(t.Context(), "cancel", "1", nil)
	if err == nil || errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "UPDATE") || !strings.Contains(err.Error(), "version") {
		t.Errorf("%v; want an error that gives the UPDATE that mends it", err)
	}
}

// A table altered under the prepared statements of a pool.
func TestAlteredTable(t *testing.T) {
	r := open(t, order, WithConnections(1))
	for i := range 3 {
		id := fmt.Sprint(i)
		r.create(t, id, nil)
		_, err := r.m.Fire(t.Context(), "pay", id, engine.Args{"payment_ref": "x"})
		check(t, err)
		_, err = r.m.Get(t.Context(), id)
		check(t, err)
		_, err = r.m.Fire(t.Context(), "pay", id, engine.Args{"payment_ref": "x"})
		check(t, err)
		r.exec(t, fmt.Sprintf("ALTER TABLE orders ALTER COLUMN payment_ref TYPE varchar(%d)", 50+i))
	}
}

// What COMMIT finds wrong in a batch is one member's, in every mode of the driver: in the
// simple protocol the server commits before it answers the last statement.
func TestDeferredConstraintInABatch(t *testing.T) {
	base := servertest.PostgresSchema(t)
	for n, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		store, err := Open(t.Context(), withParams(t, base, "default_query_exec_mode", mode))
		check(t, err)
		r := bind(t, base, store, parse(t, order))
		if n == 0 {
			r.exec(t, "CREATE TABLE refs (ref text PRIMARY KEY)")
			r.exec(t, "INSERT INTO refs VALUES ('good')")
			r.exec(t, "ALTER TABLE orders ADD FOREIGN KEY (payment_ref) REFERENCES refs DEFERRABLE INITIALLY DEFERRED")
		}
		for round := range 5 {
			var wg sync.WaitGroup
			for i := range 24 {
				id, ref := fmt.Sprint(mode, round, "-", i), "good"
				if i%12 == 5 {
					ref = "bad"
				}
				r.create(t, id, nil)
				wg.Go(func() {
					if _, err := r.m.Fire(t.Context(), "pay", id, engine.Args{"payment_ref": ref}); (err == nil) != (ref == "good") {
						t.Errorf("%s: %s: %v", mode, ref, err)
					}
				})
			}
			wg.Wait()
		}
	}
}

// jsonb writes numbers its own way. Where the row is all there is to be asked, a repeat is
// a repeat all the same.
func TestJSONBIdentity(t *testing.T) {
	const yaml = `
machine: doc
table: {name: docs}
fields: {body: {type: json, nullable: true}, kept: {type: json, default: "{}"}}
initial: draft
states: {draft: , sent: {final: true}}
transitions: {send: {from: draft, to: sent, args: {body: json}, set: {body: args.body}, identity: [body]}}
`
	for _, journal := range []string{"journal: {table: doc_log}\n", "journal: false\n"} {
		r := withTable(t, yaml+journal, `CREATE TABLE docs (id text PRIMARY KEY, status text NOT NULL, version bigint NOT NULL, body jsonb, kept jsonb NOT NULL)`)
		for i, body := range []string{`{"a":1e2}`, `[1.50, -0, 0.000, 12E-1, 1e+30, {"b": 100.0}]`, `{"a":1,"a":2e0}`, `-0.0`, `"1e2"`, `123456789012345678901234567890.5`} {
			id := fmt.Sprint(i)
			row := engine.Row{"id": id, "kept": json.RawMessage(body)}
			r.create(t, id, row)
			if journal != "journal: false\n" {
				r.exec(t, "DELETE FROM doc_log") // old entries may go
			}
			res, err := r.m.Create(t.Context(), row)
			if err != nil || res.Outcome != engine.AlreadyReached {
				t.Errorf("create %s again: %v, %v", body, res.Outcome, err)
			}
			for n, want := range []engine.Outcome{engine.Applied, engine.AlreadyReached} {
				if n == 1 && journal != "journal: false\n" {
					r.exec(t, "DELETE FROM doc_log")
				}
				res, err := r.m.Fire(t.Context(), "send", id, engine.Args{"body": json.RawMessage(body)})
				if err != nil || res.Outcome != want {
					t.Errorf("send %s: %v, %v; want %v", body, res.Outcome, err, want)
				}
			}
			for _, other := range []string{`{"a":101}`, `[1.5, 0, 0, 1.2, 1e30, {"b": 1000}]`, `{"a":1}`, `100`, `"100"`} {
				if _, err := r.m.Fire(t.Context(), "send", id, engine.Args{"body": json.RawMessage(other)}); !errors.Is(err, engine.ErrMismatch) {
					t.Errorf("%s after %s: %v", other, body, err)
				}
			}
		}
	}
}

// A constraint that is held against rows at the end of a transaction is none that INSERT
// can pass by, wherever on the table it is: a declared key is kept all the same.
func TestDeferrableBesideADeclaredKey(t *testing.T) {
	r := open(t, unique)
	r.exec(t, `ALTER TABLE tickets ADD CONSTRAINT seats UNIQUE (seat) DEFERRABLE INITIALLY IMMEDIATE`)
	var err error
	r.m, err = r.eng.Machine(t.Context(), r.def)
	check(t, err)
	r.create(t, "1", engine.Row{"number": "A", "seat": "s1"})
	forLevelsIn(t, r, func(t *testing.T, m *engine.Machine) {
		for _, opts := range [][]engine.CallOption{nil, {engine.WithKey("k")}} {
			res, err := m.Create(t.Context(), engine.Row{"id": "2", "number": "A"}, opts...)
			check(t, err)
			if res.Outcome != engine.AlreadyReached || res.ID != "1" {
				t.Errorf("%+v", res)
			}
		}
		if _, err := m.Create(t.Context(), engine.Row{"id": "3", "number": "A", "seat": "s2"}); !errors.Is(err, engine.ErrMismatch) {
			t.Errorf("another seat: %v", err)
		}
	})
	if _, err := r.m.Create(t.Context(), engine.Row{"id": "4", "number": "B", "seat": "s1"}); err == nil || !strings.Contains(err.Error(), "seats") || !strings.Contains(err.Error(), "nothing was created") {
		t.Errorf("a constraint that is not declared: %v", err)
	}
	for round := range 20 {
		var mu sync.Mutex
		applied, number := 0, fmt.Sprint("R", round)
		together(callers, func(i int) {
			res, err := r.m.Create(t.Context(), engine.Row{"id": fmt.Sprint(number, "-", i), "number": number})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if res.Outcome == engine.Applied {
				applied++
			}
		})
		if applied != 1 {
			t.Errorf("%d rows of one number", applied)
		}
	}
	r.whole(t)
}
