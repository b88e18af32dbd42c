package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// rails/rails#57363: what was rolled back has not raised anything, and a stale
// version stays stale at the second try.
func TestVersionAfterRollback(t *testing.T) {
	t.Parallel()
	store := open(t)
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o", "p")
	ctx := context.Background()
	pay := engine.Args{"payment_ref": "r"}
	tx, err := store.DB().BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := m.In(tx).Fire(ctx, "pay", "o", pay); err != nil || res.Version != 2 {
		t.Fatalf("result %+v, error %v", res, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if e, err := m.Get(ctx, "o"); err != nil || e.Version != 1 || e.State != "pending" {
		t.Errorf("after ROLLBACK the row is %+v, %v", e, err)
	}
	if res := mustFire(t, m, "pay", "o", pay); res.Outcome != engine.Applied || res.Version != 2 {
		t.Errorf("the second Pay gave %+v, want Applied", res)
	}

	mustFire(t, m, "cancel", "p", nil)
	for range 2 {
		if _, err := m.Fire(ctx, "pay", "p", pay, engine.WithVersion(1)); !errors.Is(err, engine.ErrConflict) {
			t.Errorf("a stale version: %v, want ErrConflict both times", err)
		}
	}
	if e, err := m.Get(ctx, "p"); err != nil || e.Version != 2 || e.State != "cancelled" {
		t.Errorf("the row is %+v, %v", e, err)
	}
}

// gocardless/statesman#433, kmmbvnr/django-fsm#255: after a lost race the caller
// learns the state that won, and a reload goes on with the version that won.
func TestLostRaceThenReload(t *testing.T) {
	t.Parallel()
	store := open(t)
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	ctx := context.Background()
	before, err := m.Get(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	mustFire(t, m, "pay", "o", engine.Args{"payment_ref": "other"})
	_, err = m.Fire(ctx, "cancel", "o", nil, engine.WithVersion(before.Version))
	var e *engine.Error
	if !errors.Is(err, engine.ErrConflict) || !errors.As(err, &e) || e.State != "paid" || e.Version != 2 {
		t.Fatalf("error %v, want ErrConflict with the state and version that won", err)
	}
	if before.State != "pending" || before.Version != 1 {
		t.Errorf("the loaded row became %+v", before)
	}
	after, err := m.Get(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := m.Fire(ctx, "cancel", "o", nil, engine.WithVersion(after.Version)); err != nil || res.Version != 3 {
		t.Errorf("after the reload: %+v, %v", res, err)
	}
}

// alibaba/COLA#335: a transition that the state does not have changes nothing, and
// says what is allowed; a state that the machine does not have names itself.
func TestUndefinedEdge(t *testing.T) {
	t.Parallel()
	store := open(t)
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	ctx := context.Background()
	_, err := m.Fire(ctx, "ship", "o", nil)
	var e *engine.Error
	if !errors.Is(err, engine.ErrNotAllowed) || !errors.As(err, &e) || !slices.Equal(e.Allowed, []string{"pay", "cancel"}) {
		t.Errorf("error %v with %v allowed", err, e)
	}
	if row, err := m.Get(ctx, "o"); err != nil || row.Version != 1 {
		t.Errorf("row %+v, %v", row, err)
	}
	if _, err := m.Fire(ctx, "ship", "nobody", nil); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("no row: %v", err)
	}
}

// *sql.Conn is taken to have an open transaction, whoever began it.
func TestInConn(t *testing.T) {
	t.Parallel()
	store := open(t)
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	ctx := context.Background()
	conn, err := store.DB().DB.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string) {
		t.Helper()
		if _, err := conn.ExecContext(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN IMMEDIATE")
	if res, err := m.In(conn).Fire(ctx, "pay", "o", engine.Args{"payment_ref": "r"}, engine.WithKey("k")); err != nil || res.Outcome != engine.Applied {
		t.Errorf("result %+v, error %v", res, err)
	}
	if res, err := m.In(conn).Fire(ctx, "pay", "o", engine.Args{"payment_ref": "r"}, engine.WithKey("k")); err != nil || res.Outcome != engine.Replayed {
		t.Errorf("repeat: result %+v, error %v", res, err)
	}
	for id, answer := range map[string]error{"o": engine.ErrConflict, "nobody": engine.ErrNotFound} { // they leave the transaction usable
		if _, err := m.In(conn).Fire(ctx, "cancel", id, nil, engine.WithVersion(1)); !errors.Is(err, answer) {
			t.Errorf("cancel %s: %v, want %v", id, err, answer)
		}
	}
	run("INSERT INTO orders (id, status, version, amount) VALUES ('mine', 'pending', 1, 0)")
	run("COMMIT")
	if err := conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"o": "paid", "mine": "pending"} {
		if e, err := m.Get(ctx, id); err != nil || e.State != want {
			t.Errorf("%s is %+v, %v, want %s", id, e, err, want)
		}
	}
}
