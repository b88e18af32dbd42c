package enginetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// parcel has an edge of each kind: plain, back, onto itself, conditional.
const parcel = `
machine: parcel
table: {name: parcels}
fields:
  weight: {type: int}
  label:  {type: string, nullable: true}
initial: open
states:
  open:
  sent:
  lost: {final: true}
transitions:
  send:   {from: open, to: sent, args: {label: string}, when: weight > 7 and args.label != '', set: {label: args.label}}
  reopen: {from: sent, to: open}
  weigh:  {from: open, to: open, args: {more: int}, key: required, when: args.more > 0, set: {weight: weight + args.more}}
  lose:   {from: [open, sent], to: lost}
`

func parse(t testing.TB, text string) *definitions.Machine {
	t.Helper()
	def, err := definitions.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// mutant is a store with a fault.
type mutant struct {
	engine.Store
	engine.Table
	apply   func(t engine.Table, ctx context.Context, tx engine.Tx, c *engine.Call) (engine.Change, error)
	inspect func(s *engine.Snapshot)
	get     func(r *engine.RowState)
	journal func(e []engine.Entry) []engine.Entry
}

func (m *mutant) Bind(ctx context.Context, rules *engine.Rules) (engine.Table, error) {
	t, err := m.Store.Bind(ctx, rules)
	bound := *m
	bound.Table = t
	return &bound, err
}

func (m *mutant) Apply(ctx context.Context, tx engine.Tx, c *engine.Call) (engine.Change, error) {
	if m.apply == nil {
		return m.Table.Apply(ctx, tx, c)
	}
	return m.apply(m.Table, ctx, tx, c)
}

func (m *mutant) Inspect(ctx context.Context, tx engine.Tx, q engine.Inquiry) (engine.Snapshot, error) {
	s, err := m.Table.Inspect(ctx, tx, q)
	if m.inspect != nil {
		m.inspect(&s)
	}
	return s, err
}

func (m *mutant) Get(ctx context.Context, tx engine.Tx, id string) (engine.RowState, bool, error) {
	r, ok, err := m.Table.Get(ctx, tx, id)
	if m.get != nil {
		m.get(&r)
	}
	return r, ok, err
}

func (m *mutant) Journal(ctx context.Context, tx engine.Tx, id string) ([]engine.Entry, error) {
	e, err := m.Table.Journal(ctx, tx, id)
	if m.journal != nil {
		e = m.journal(e)
	}
	return e, err
}

// faults runs all parts of a walk and names those that found something.
func faults(t *testing.T, w *walker) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // some faults are sought until then
	defer cancel()
	var parts []string
	add := func(part string, found bool) {
		if found {
			parts = append(parts, part)
		}
	}
	add("graph", len(w.checkGraph()) > 0)
	add("matrix", len(w.matrix(ctx)) > 0)
	onPaths, _ := w.paths(ctx)
	add("paths", len(onPaths) > 0)
	for _, r := range races {
		for _, e := range w.graph.edges {
			if p, ok := w.search.found[e]; ok && r.run(ctx, w, p) != nil {
				add(r.name, true)
				break
			}
		}
	}
	return strings.Join(parts, ", ")
}

// TestFaultsAreFound: a store with a fault is found out, by the part that is for it.
func TestFaultsAreFound(t *testing.T) {
	def := parse(t, parcel)
	tests := map[string]struct {
		want   string
		mutant mutant
	}{
		"none": {"", mutant{}},
		"the version is not looked at": {"stale version", mutant{apply: func(t engine.Table, ctx context.Context, tx engine.Tx, c *engine.Call) (engine.Change, error) {
			any := *c
			any.Version = engine.AnyVersion
			return t.Apply(ctx, tx, &any)
		}}},
		"another target is reported": {"matrix, paths, twice, at once, stale version, after a rollback, lost acknowledgement", mutant{apply: func(t engine.Table, ctx context.Context, tx engine.Tx, c *engine.Call) (engine.Change, error) {
			change, err := t.Apply(ctx, tx, c)
			change.To = 2
			return change, err
		}}},
		"keys are not seen": {"twice, at once, lost acknowledgement", mutant{inspect: func(s *engine.Snapshot) { s.ByKey = nil }}},
		"transactions are left": {"after a rollback", mutant{apply: func(t engine.Table, ctx context.Context, tx engine.Tx, c *engine.Call) (engine.Change, error) {
			if tx != nil {
				return engine.Change{OK: true, From: 0, To: 1, Version: max(c.Version, 0) + 2}, nil
			}
			return t.Apply(ctx, tx, c)
		}}},
		"a column is not written":      {"matrix, paths, twice, at once, stale version, after a rollback, lost acknowledgement", mutant{get: func(r *engine.RowState) { r.Values[0] = nil }}},
		"the journal forgets":          {"matrix, paths, twice, at once, stale version, after a rollback, lost acknowledgement", mutant{journal: func(e []engine.Entry) []engine.Entry { return e[1:] }}},
		"the row is left where it was": {"matrix, paths, twice, at once, stale version, after a rollback, lost acknowledgement", mutant{get: func(r *engine.RowState) { r.State = 0 }}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.mutant.Store = memory.New()
			w, err := newWalker(&tt.mutant, Config{Definition: def})
			if err != nil {
				t.Fatal(err)
			}
			if len(w.search.found) != len(w.graph.edges) {
				t.Fatal(w.coverage())
			}
			if got := faults(t, w); got != tt.want {
				t.Errorf("found by %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLooplabIsAsked: an edge that the walker's graph does not have is a fault.
func TestLooplabIsAsked(t *testing.T) {
	can := func(state, transition string) bool { return state == "open" || transition != "send" && state == "sent" }
	w, err := newWalker(memory.New(), Config{Definition: parse(t, parcel), Can: can})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.checkGraph(), "; "); !strings.Contains(got, "says true of reopen in state open, looplab/fsm says false") {
		t.Errorf("the graph says %q", got)
	}
	w.graph = newGraph(parse(t, strings.Replace(parcel, "lose:   {from: [open, sent]", "lose:   {from: [sent]", 1)))
	if got := faults(t, w); !strings.Contains(got, "matrix") {
		t.Errorf("found by %q", got)
	}
}

// TestUnwalkedEdgesAreCounted: what nobody can find is left to Config.
func TestUnwalkedEdgesAreCounted(t *testing.T) {
	const text = `
machine: vault
table: {name: vaults}
fields: {code: {type: string}, number: {type: int}}
initial: shut
states: {shut: , open: {final: true}}
transitions:
  unlock: {from: shut, to: open, args: {pin: int}, when: args.pin * args.pin * args.pin - args.pin == 10940826 and number > args.pin * 3}
`
	c := Config{Definition: parse(t, text)}
	w, err := newWalker(memory.New(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.coverage(); !strings.Contains(got, "0 of 1 edges walked") || !strings.Contains(got, "NOT WALKED  unlock: shut → open") || !strings.Contains(got, "NOT REACHED  state open") {
		t.Errorf("coverage:\n%s", got)
	}
	c.Row = func(string) engine.Row { return engine.Row{"number": 1000} }
	c.Args = func(transition, to string, row engine.Row) engine.Args {
		if transition != "unlock" || to != "open" || row["number"] != int64(1000) {
			t.Errorf("asked for %s to %s of %v", transition, to, row)
		}
		return engine.Args{"pin": 222}
	}
	c.Complete = true
	Walk(t, memory.New(), c)
}
