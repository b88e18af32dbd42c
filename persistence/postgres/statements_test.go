package postgres

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
)

// The statements of order.pay, order.cancel and the rest, as they must be: one for
// the CAS and its journal row, one for the diagnosis of a miss.
const (
	journalColumns = `"machine", "entity_id", "version", "transition", "from_state", "to_state", "args", "key", "fingerprint", "attempt", "actor", "meta", "topic", "at"`

	payCAS = `UPDATE "orders" SET "version" = "version" + 1, "status" = CAST($1 AS text), "paid_at" = CAST($2 AS timestamptz), ` +
		`"payment_ref" = CAST(CAST($3 AS text) AS text) WHERE "id" = $4 AND "status" = $5`
	fits   = ` AND "version" < 9223372036854775807`
	payLog = ` RETURNING "version" AS v), fsmgen_log AS (INSERT INTO "fsm_journal" (` + journalColumns + `) SELECT $?, $?, c.v, $?, $?, $?, $?, $?, $?, $?, $?, $?, $?, $? ` +
		`FROM fsmgen_cas AS c) SELECT c.v FROM fsmgen_cas AS c`
	pay      = `WITH fsmgen_cas AS (` + payCAS + fits + payLog
	payKeyed = `WITH fsmgen_cas AS (` + payCAS + fits + ` AND NOT EXISTS (SELECT 1 FROM "fsm_journal" WHERE machine = $6 AND entity_id = $7 AND "key" = $8)` + payLog
	lock     = `SELECT "status", "version" FROM "orders" WHERE "id" = $1 FOR NO KEY UPDATE`
	lockAll  = `SELECT "id", "status", "version", "paid_at", "payment_ref" FROM "orders" WHERE "id" = $1 FOR NO KEY UPDATE`

	cancel = `WITH fsmgen_row AS (SELECT "status" AS was FROM "orders" WHERE "id" = $5 AND ("status" = $6 OR "status" = $7) FOR NO KEY UPDATE), ` +
		`fsmgen_cas AS (UPDATE "orders" SET "version" = "version" + 1, "status" = CAST($1 AS text) WHERE "id" = $2 AND ("status" = $3 OR "status" = $4)` + fits +
		` AND EXISTS (SELECT 1 FROM fsmgen_row) RETURNING "version" AS v), fsmgen_log AS (INSERT INTO "fsm_journal" (` + journalColumns + `) ` +
		`SELECT $?, $?, c.v, $?, CAST(o.was AS text), $?, $?, $?, $?, $?, $?, $?, $?, $? FROM fsmgen_cas AS c CROSS JOIN fsmgen_row AS o) ` +
		`SELECT c.v, o.was FROM fsmgen_cas AS c CROSS JOIN fsmgen_row AS o`

	bare        = `UPDATE "lamps" SET "version" = "version" + 1, "status" = CAST($1 AS text) WHERE "id" = $2 AND "status" = $3` + fits + ` RETURNING "version" AS v`
	bareVersion = `UPDATE "lamps" SET "version" = "version" + 1, "status" = CAST($1 AS text) WHERE "id" = $2 AND "status" = $3 AND "version" = $4` + fits + ` RETURNING "version" AS v`

	inspect = `SELECT r."id", …` // the row and its journal together
	entries = `SELECT * FROM (SELECT 'k' …`
)

var logParams = regexp.MustCompile(`\$\d+`)

// same compares a recorded statement with a wanted one, in which $? stands for any
// parameter and … for the rest.
func same(got, want string) bool {
	if start, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(got, start)
	}
	if strings.Contains(want, "$?") {
		head, tail, _ := strings.Cut(want, "$?")
		return strings.HasPrefix(got, head) && logParams.ReplaceAllString(got[len(head):], "$?") == logParams.ReplaceAllString("$?"+tail, "$?")
	}
	return got == want
}

func wantStatements(t *testing.T, log *recorder.Log, want ...string) {
	t.Helper()
	got := log.Texts()
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("statements:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	log.Reset()
}

func TestStatements(t *testing.T) {
	// a call that could share a commit looks for a key somebody else may hold: in a
	// batch a duplicate must not raise
	t.Run("sharing commits", func(t *testing.T) { testStatements(t, payKeyed) })
	t.Run("without", func(t *testing.T) { testStatements(t, pay, WithoutGroupCommit()) })
}

func testStatements(t *testing.T, keyed string, opts ...Option) {
	r, log := recorded(t, order, opts...)
	ref := engine.Args{"payment_ref": "x"}
	fire := func(want error, outcome engine.Outcome, transition, id string, args engine.Args, opts ...engine.CallOption) {
		t.Helper()
		res, err := r.m.Fire(t.Context(), transition, id, args, opts...)
		if !errors.Is(err, want) || res.Outcome != outcome {
			t.Fatalf("%s %s: %v, %v; want %v, %v", transition, id, res.Outcome, err, outcome, want)
		}
	}
	for _, id := range []string{"o-1", "o-2", "o-3", "o-4"} {
		r.create(t, id, nil)
	}
	if n := len(log.Texts()); n != 4 {
		t.Errorf("four creations took %d statements", n)
	}
	log.Reset()

	fire(nil, engine.Applied, "pay", "o-1", ref)
	wantStatements(t, log, pay)
	fire(nil, engine.Applied, "pay", "o-2", ref, engine.WithKey("k"))
	wantStatements(t, log, keyed)
	fire(nil, engine.Applied, "pay", "o-3", ref, engine.WithVersion(1))
	wantStatements(t, log, strings.Replace(pay, `"status" = $5`, `"status" = $5 AND "version" = $6`, 1))
	fire(nil, engine.Applied, "cancel", "o-1", nil)
	wantStatements(t, log, cancel)
	fire(nil, engine.AlreadyReached, "pay", "o-3", ref)
	wantStatements(t, log, pay, inspect)
	fire(nil, engine.Replayed, "pay", "o-2", ref, engine.WithKey("k"))
	wantStatements(t, log, keyed, inspect)
	fire(engine.ErrNotAllowed, 0, "ship", "o-4", nil)
	wantStatements(t, log, "WITH fsmgen_cas AS (UPDATE …", inspect)
	fire(engine.ErrNotFound, 0, "pay", "nobody", ref)
	wantStatements(t, log, pay, inspect)
	// a seen key for another transition: the row would fit
	fire(engine.ErrKeyReused, 0, "ship", "o-2", nil, engine.WithKey("k"))
	wantStatements(t, log, "WITH fsmgen_cas AS (UPDATE …", inspect)
	r.whole(t)
}

func TestStatementsOfBareMachine(t *testing.T) {
	r, log := recorded(t, lamp)
	r.create(t, "l", nil)
	log.Reset()
	_, err := r.m.Fire(t.Context(), "switch_on", "l", nil)
	check(t, err)
	wantStatements(t, log, bare)
	_, err = r.m.Fire(t.Context(), "switch_on", "l", nil)
	check(t, err)
	wantStatements(t, log, bare, `SELECT r."id", …`)
	res, err := r.m.Fire(t.Context(), "switch_off", "l", nil, engine.WithVersion(2))
	check(t, err)
	if res.Version != 3 {
		t.Errorf("version %d, want 3", res.Version)
	}
	wantStatements(t, log, bareVersion)
}

func TestStatementsInCallersTransaction(t *testing.T) {
	r, log := recorded(t, order)
	for _, id := range []string{"o-1", "o-2"} {
		r.create(t, id, nil)
	}
	ref := engine.Args{"payment_ref": "x"}
	in := func(want error, outcome engine.Outcome, id string, statements []string, opts ...engine.CallOption) {
		t.Helper()
		tx, err := r.store.DB().BeginTx(t.Context(), nil)
		check(t, err)
		log.Reset()
		res, err := r.m.In(tx).Fire(t.Context(), "pay", id, ref, opts...)
		if !errors.Is(err, want) || res.Outcome != outcome {
			t.Fatalf("%v, %v; want %v, %v", res.Outcome, err, outcome, want)
		}
		wantStatements(t, log, statements...)
		check(t, tx.Commit())
		log.Reset()
	}
	in(nil, engine.Applied, "o-1", []string{pay})
	in(nil, engine.Applied, "o-2", []string{lock, payKeyed}, engine.WithKey("k"))
	in(nil, engine.AlreadyReached, "o-1", []string{pay, lockAll, entries})
	in(nil, engine.Replayed, "o-2", []string{lock, lockAll, entries}, engine.WithKey("k"))
	in(engine.ErrNotFound, 0, "nobody", []string{lock, lockAll, entries}, engine.WithKey("k"))
	r.whole(t)
}

const settled = `
machine: settled
table: {name: settled}
initial: open
states: {open: , done: {final: true}}
transitions:
  finish: {from: open, to: done}
`

// An effect stands in one transaction with the CAS; in the caller's it stands in the
// engine's savepoint. After an error only a rollback is sent.
func TestStatementsAroundEffects(t *testing.T) {
	base, log := recorded(t, settled)
	base.def.Transitions[0].Effect, base.def.Transitions[0].After = "post", "tell"
	fail := errors.New("the ledger says no")
	var effect error
	m, err := base.eng.Machine(t.Context(), base.def, engine.Code{
		"post": {Effect: func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			if effect == nil {
				_, err := tx.ExecContext(ctx, "SELECT 1")
				return err
			}
			return effect
		}},
		"tell": {After: func(context.Context, engine.Event) error { return nil }},
	})
	check(t, err)
	const read, cas = `SELECT r."id", …`, `WITH fsmgen_cas AS (UPDATE …`
	for _, id := range []string{"1", "2", "3", "4"} {
		_, err := m.Create(t.Context(), engine.Row{"id": id})
		check(t, err)
	}
	log.Reset()
	_, err = m.Fire(t.Context(), "finish", "1", nil)
	check(t, err)
	wantStatements(t, log, read, "BEGIN", cas, "SELECT 1", "COMMIT")
	effect = fail
	if _, err = m.Fire(t.Context(), "finish", "2", nil); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	wantStatements(t, log, read, "BEGIN", cas, "ROLLBACK")

	tx, err := base.store.DB().BeginTx(t.Context(), &sql.TxOptions{})
	check(t, err)
	log.Reset()
	if _, err = m.In(tx).Fire(t.Context(), "finish", "2", nil); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	inRead := []string{`SELECT "id", …`, entries}
	wantStatements(t, log, append(inRead, "SAVEPOINT fsmgen_call_0", cas, "ROLLBACK TO SAVEPOINT fsmgen_call_0", "RELEASE SAVEPOINT fsmgen_call_0")...)
	effect = nil
	_, err = m.In(tx).Fire(t.Context(), "finish", "2", nil)
	check(t, err)
	wantStatements(t, log, append(inRead, "SAVEPOINT fsmgen_call_0", cas, "SELECT 1", "RELEASE SAVEPOINT fsmgen_call_0")...)
	check(t, tx.Commit())
	base.whole(t)
}
