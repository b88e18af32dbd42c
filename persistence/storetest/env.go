package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// env is one test: its store, its engine, and its machines.
type env struct {
	*testing.T
	h   Harness
	b   Backend
	eng *engine.Engine
	m   *engine.Machine // of the first definition

	machines map[string]*engine.Machine
	defs     []*definitions.Machine
	code     map[string]engine.Code // by machine
	ticks    atomic.Int64
	ids      atomic.Int64
	exempt   map[string]exemption // by machine + "/" + id
}

// exemption says which invariants a row that was bent from outside cannot hold.
type exemption uint8

const (
	// adopted: the row was made elsewhere; its journal begins at some version.
	adopted exemption = iota + 1
	// bent: the row was written behind the journal's back.
	bent
)

// start is when the clock of every test begins. It has more digits than any
// database keeps.
var start = time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.FixedZone("east", 8*3600)) //nolint:gochecknoglobals // a constant

// open gives the test a fresh store with the machines of the texts. A text that
// uses what the loader cannot run yet skips the test.
func (e *env) open(texts ...string) {
	e.Helper()
	e.openWith(nil, texts...)
}

// openWith wraps the store before the engine sees it.
func (e *env) openWith(wrap func(engine.Store) engine.Store, texts ...string) {
	e.Helper()
	for _, text := range texts {
		e.defs = append(e.defs, e.parse(text))
	}
	e.b = e.h.Open(e.T, e.defs...)
	e.exempt = map[string]exemption{}
	e.attach(wrap)
	e.Cleanup(func() {
		if !e.Failed() {
			e.checkInvariants()
		}
	})
}

// attach makes the engine and the machines over the open store.
func (e *env) attach(wrap func(engine.Store) engine.Store) {
	e.Helper()
	store := e.b.Store()
	if wrap != nil {
		store = wrap(store)
	}
	eng, err := engine.New(store, engine.WithClock(e.now))
	e.must(err)
	e.eng, e.machines = eng, map[string]*engine.Machine{}
	for i, def := range e.defs {
		m, err := eng.Machine(e.Context(), def, e.code[def.Name])
		e.must(err)
		e.machines[def.Name] = m
		if i == 0 {
			e.m = m
		}
	}
}

// now is the engine's clock: every call is a second later.
func (e *env) now() time.Time { return start.Add(time.Duration(e.ticks.Add(1)) * time.Second) }

func (e *env) parse(text string) *definitions.Machine {
	e.Helper()
	def, err := definitions.Parse("storetest.yaml", []byte(text))
	var problems definitions.Problems
	if errors.As(err, &problems) && onlyUnsupported(problems) {
		e.Skipf("the definition uses what the loader cannot run yet:\n%v", err)
	}
	e.must(err)
	return def
}

func onlyUnsupported(problems definitions.Problems) bool {
	return !slices.ContainsFunc(problems, func(p definitions.Problem) bool { return !p.Warning && p.Rule != "unsupported" })
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// need skips the test aloud where the store cannot do something.
func (e *env) need(can bool, what string) {
	e.Helper()
	if !can {
		e.Skipf("the store has no %s", what)
	}
}

// create inserts a row of the first machine, which must be new.
func (e *env) create(row engine.Row, opts ...engine.CallOption) engine.Result {
	e.Helper()
	res, err := e.m.Create(e.Context(), row, opts...)
	e.must(err)
	if res.Outcome != engine.Applied {
		e.Fatalf("Create(%v) = %v, want Applied", row, res.Outcome)
	}
	return res
}

// fire runs a transition of the first machine, which must succeed.
func (e *env) fire(transition, id string, args engine.Args, opts ...engine.CallOption) engine.Result {
	e.Helper()
	res, err := e.m.Fire(e.Context(), transition, id, args, opts...)
	e.must(err)
	return res
}

// apply is fire for a transition that must be applied now.
func (e *env) apply(transition, id string, args engine.Args, opts ...engine.CallOption) engine.Result {
	e.Helper()
	res := e.fire(transition, id, args, opts...)
	if res.Outcome != engine.Applied {
		e.Fatalf("%s %s = %v (%s, version %d), want Applied", transition, id, res.Outcome, res.State, res.Version)
	}
	return res
}

// refuse runs a transition of the first machine that must fail with kind.
func (e *env) refuse(kind error, transition, id string, args engine.Args, opts ...engine.CallOption) *engine.Error {
	e.Helper()
	res, err := e.m.Fire(e.Context(), transition, id, args, opts...)
	if err == nil {
		e.Fatalf("%s %s = %v (%s, version %d), want error %q", transition, id, res.Outcome, res.State, res.Version, kind)
	}
	return e.wantError(err, kind)
}

// wantError holds an error against its kind, and against every other kind.
func (e *env) wantError(err, kind error) *engine.Error {
	e.Helper()
	if !errors.Is(err, kind) {
		e.Fatalf("error is %v, want one that matches %q", err, kind)
	}
	for _, other := range kinds() {
		if other != kind && errors.Is(err, other) { //nolint:errorlint // which of the sentinels
			e.Fatalf("error matches both %q and %q: %v", kind, other, err)
		}
	}
	var detail *engine.Error
	if !errors.As(err, &detail) {
		e.Fatalf("error %v (%T) carries no *engine.Error", err, err)
	}
	return detail
}

// kinds lists the sentinels of the engine.
func kinds() []error {
	return []error{
		engine.ErrNotFound, engine.ErrNotAllowed, engine.ErrConflict, engine.ErrRejected, engine.ErrMismatch,
		engine.ErrKeyReused, engine.ErrUnknownState, engine.ErrInvalidArgs, engine.ErrBusy, engine.ErrUnknownOutcome,
	}
}

// wantResult holds a result against an outcome and where the row is.
func (e *env) wantResult(res engine.Result, outcome engine.Outcome, state string, version int64) {
	e.Helper()
	if res.Outcome != outcome || res.State != state || res.Version != version {
		e.Fatalf("result is %v, %s, version %d; want %v, %s, version %d", res.Outcome, res.State, res.Version, outcome, state, version)
	}
}

// wantRow reads a row of the first machine, through the engine and beside it.
func (e *env) wantRow(id, state string, version int64) {
	e.Helper()
	got, err := e.m.Get(e.Context(), id)
	e.must(err)
	if got.ID != id || got.State != state || got.Version != version {
		e.Fatalf("Get(%s) = %s, %s, version %d; want %s, version %d", id, got.ID, got.State, got.Version, state, version)
	}
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	if raw := rows[id].Version; raw != version {
		e.Fatalf("the version column of %s holds %v, want %d", id, raw, version)
	}
}

// entries reads the journal of a row of the first machine.
func (e *env) entries(id string) []engine.Entry {
	e.Helper()
	entries, err := e.m.Journal(e.Context(), id)
	e.must(err)
	return entries
}

// wantJournal holds the transitions in a row's journal against names; "" is creation.
func (e *env) wantJournal(id string, names ...string) []engine.Entry {
	e.Helper()
	entries := e.entries(id)
	got := make([]string, len(entries))
	for i, entry := range entries {
		got[i] = entry.Transition
	}
	if !slices.Equal(got, names) {
		e.Fatalf("journal of %s is %q, want %q", id, got, names)
	}
	return entries
}

// insert adds a row of the first machine from beside the engine.
func (e *env) insert(row engine.Row) {
	e.Helper()
	e.exempt[e.m.Definition().Name+"/"+row["id"].(string)] = adopted
	e.must(e.b.Insert(e.Context(), e.m.Definition(), row))
}

// update bends a row of the first machine from beside the engine.
func (e *env) update(id string, set engine.Row) {
	e.Helper()
	e.exempt[e.m.Definition().Name+"/"+id] = bent
	e.must(e.b.Update(e.Context(), e.m.Definition(), id, set))
}

// remove deletes a row of the first machine from beside the engine.
func (e *env) remove(id string) {
	e.Helper()
	e.must(e.b.Delete(e.Context(), e.m.Definition(), id))
}

// begin opens a transaction of the test's own; it is rolled back at the end if the
// test has not ended it.
func (e *env) begin(form TxForm, level sql.IsolationLevel) *Tx {
	e.Helper()
	tx, err := e.b.Begin(e.Context(), form, level)
	e.must(err)
	done := false
	end := func(f func() error) func() error {
		return func() error { done = true; return f() }
	}
	own := &Tx{Tx: tx.Tx, Commit: end(tx.Commit), Rollback: end(tx.Rollback)}
	e.Cleanup(func() {
		if !done {
			_ = own.Rollback()
		}
	})
	return own
}

// within runs a step that must end before the limit: a hang is a failure here,
// not a timeout of the whole run.
func (e *env) within(limit time.Duration, what string, step func(ctx context.Context)) {
	e.Helper()
	done := make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(done)
		step(e.Context())
	}()
	select {
	case <-done:
		if took := time.Since(begun); took > limit {
			e.Fatalf("%s took %v, the limit is %v", what, took, limit)
		}
	case <-time.After(limit + 5*time.Second):
		e.Fatalf("%s hangs (limit %v)", what, limit)
	}
}

// fresh gives an id that the test has not used.
func (e *env) fresh() string { return fmt.Sprint("n", e.ids.Add(1)) }

func contains(text, part string) bool { return strings.Contains(text, part) }
