package memory_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

const door = `
machine: door
table: {name: doors}
fields:
  colour: {type: string, default: red}
  weight: {type: int, nullable: true}
  hung:   {type: time, default: now()}
  tag:    {type: bytes, nullable: true}
initial: shut
states:
  shut: {aliases: [closed]}
  open:
transitions:
  pull: {from: shut, to: open}
  push: {from: open, to: shut}
`

func machine(t testing.TB, s *memory.Store) (*engine.Engine, *engine.Machine) {
	t.Helper()
	def, err := definitions.Parse("door.yaml", []byte(door))
	check(t, err)
	eng, err := engine.New(s)
	check(t, err)
	m, err := eng.Machine(context.Background(), def)
	check(t, err)
	return eng, m
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPutSeedsRows(t *testing.T) {
	s := memory.New()
	_, m := machine(t, s)
	ctx := t.Context()
	tag := []byte("tag")
	check(t, s.Put(ctx, m.Definition(), engine.Row{"id": "fresh"}))
	check(t, s.Put(ctx, m.Definition(), engine.Row{"id": "old", "status": "closed", "version": 7, "weight": 3, "tag": tag}))
	tag[0] = 'X'
	got, err := m.Get(ctx, "fresh")
	check(t, err)
	row := got.Row()
	if got.State != "shut" || got.Version != 1 || row["colour"] != "red" || row["weight"] != nil || time.Since(row["hung"].(time.Time)) > time.Minute {
		t.Errorf("a row that says nothing is %+v", got)
	}
	got, err = m.Get(ctx, "old")
	check(t, err)
	if got.State != "shut" || got.Version != 7 || got.Row()["weight"] != int64(3) || string(got.Row()["tag"].([]byte)) != "tag" {
		t.Errorf("the row is %+v", got)
	}
	// Over what is there, only what is said changes.
	check(t, s.Put(ctx, m.Definition(), engine.Row{"id": "old", "status": "open"}))
	got, err = m.Get(ctx, "old")
	check(t, err)
	if got.State != "open" || got.Version != 7 || got.Row()["weight"] != int64(3) {
		t.Errorf("the row is %+v", got)
	}
	check(t, s.Delete(ctx, m.Definition(), "old"))
	check(t, s.Delete(ctx, m.Definition(), "old"))
	if _, err := m.Get(ctx, "old"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a deleted row: %v", err)
	}
}

func TestPutRefusesWhatNoRowCanHold(t *testing.T) {
	s := memory.New()
	_, m := machine(t, s)
	for _, row := range []engine.Row{
		nil, {"id": ""}, {"id": 1.5}, {"id": "a", "colr": "red"}, {"id": "a", "weight": "heavy"}, {"id": "a", "version": "one"}, {"id": "a", "status": 1},
	} {
		if err := s.Put(t.Context(), m.Definition(), row); err == nil {
			t.Errorf("Put(%v) is no error", row)
		}
	}
	if _, err := m.Get(t.Context(), "a"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a refused row: %v", err)
	}
}

func TestTxHasNoSQL(t *testing.T) {
	tx, err := memory.New().Begin(t.Context())
	check(t, err)
	_, exec := tx.ExecContext(t.Context(), "DELETE FROM doors")
	_, query := tx.QueryContext(t.Context(), "SELECT 1") //nolint:sqlclosecheck,rowserrcheck // there are none
	var n int
	row := tx.QueryRowContext(t.Context(), "SELECT 1").Scan(&n)
	for name, err := range map[string]error{"ExecContext": exec, "QueryContext": query, "QueryRowContext": row} {
		if !errors.Is(err, memory.ErrNoSQL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, tx.Commit())
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("Rollback after Commit: %v", err)
	}
	if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("Commit after Commit: %v", err)
	}
}

func TestBeginWaitsItsTurn(t *testing.T) {
	s := memory.New(memory.WithWait(20 * time.Millisecond))
	tx, err := s.Begin(t.Context())
	check(t, err)
	if _, err := s.Begin(t.Context()); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a second Begin: %v", err)
	}
	check(t, tx.Rollback())
	tx, err = s.Begin(t.Context())
	check(t, err)
	check(t, tx.Commit())
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Begin(dead); err != context.Canceled { //nolint:errorlint // its own, alone
		t.Errorf("Begin with a dead context: %v", err)
	}
}

func TestInRefusesTransactionsOfOthers(t *testing.T) {
	s := memory.New()
	_, m := machine(t, s)
	check(t, s.Put(t.Context(), m.Definition(), engine.Row{"id": "a"}))
	foreign, err := memory.New().Begin(t.Context())
	check(t, err)
	defer foreign.Rollback() //nolint:errcheck // the test is over
	for name, tx := range map[string]engine.Tx{"another store's": foreign, "an SQL one": &sql.Tx{}} {
		_, fire := m.In(tx).Fire(t.Context(), "pull", "a", nil)
		_, get := m.In(tx).Get(t.Context(), "a")
		if fire == nil || get == nil {
			t.Errorf("%s transaction: %v, %v", name, fire, get)
		}
	}
}

func ExampleStore_Begin() {
	ctx := context.Background()
	store := memory.New()
	def, err := definitions.Parse("door.yaml", []byte(door))
	if err != nil {
		panic(err)
	}
	eng, err := engine.New(store)
	if err != nil {
		panic(err)
	}
	doors, err := eng.Machine(ctx, def)
	if err != nil {
		panic(err)
	}
	if err := store.Put(ctx, def, engine.Row{"id": "front"}); err != nil {
		panic(err)
	}

	tx, err := store.Begin(ctx)
	if err != nil {
		panic(err)
	}
	inside, err := doors.In(tx).Fire(ctx, "pull", "front", nil)
	if err != nil {
		panic(err)
	}
	outside, err := doors.Get(ctx, "front")
	if err != nil {
		panic(err)
	}
	fmt.Println("inside:", inside.State, "outside:", outside.State)
	fmt.Println(tx.Commit())
	// Output:
	// inside: open outside: shut
	// <nil>
}
