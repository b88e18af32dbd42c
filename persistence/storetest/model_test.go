package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

var _ = flag.Bool("long", false, "more generated sequences of calls")

// TestMain keeps the default run short.
func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		if err := flag.Set("rapid.checks", strconv.Itoa(rounds(20, 500))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestMemoryAndSQLAgree runs the same calls on the memory store and on SQLite, and
// wants the same answers.
func TestMemoryAndSQLAgree(t *testing.T) {
	for _, text := range []string{order, ticket, review, payment, approval, counter, shipment, bare, everything, ledger} {
		def := (&env{T: t}).parse(text)
		t.Run(def.Name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := newWorld(rt, def)
				defer w.close()
				rt.Repeat(map[string]func(*rapid.T){
					"create": w.create, "fire": w.fire, "fire again": w.fire, "delete": w.remove, "put": w.put,
					"begin": w.begin, "end": w.end, "": w.compare,
				})
			})
		})
	}
}

// side is one of the two stores.
type side struct {
	b     Backend
	m     *engine.Machine
	tx    *Tx
	ticks int
}

// world is both stores after the same calls.
type world struct {
	def   *definitions.Machine
	sides [2]*side
	inTx  bool
	ids   []string
	stop  func()
}

func newWorld(rt *rapid.T, def *definitions.Machine) *world {
	w := &world{def: def, ids: []string{"a", "b", "B"}}
	if def.Table.ID.Type == expr.Int {
		w.ids = []string{"1", "2", "-3"}
	}
	store, err := sqlite.Open(context.Background(), ":memory:", sqlite.WithWait(100*time.Millisecond))
	fatalIf(rt, err)
	fatalIf(rt, store.Migrate(context.Background(), def))
	quote := func(s string) string { return "`" + s + "`" }
	w.stop = func() { _ = store.Close() }
	w.sides[0] = &side{b: &memoryBackend{s: memory.New()}}
	w.sides[1] = &side{b: &SQL{Opened: store, Pool: store.DB(), Beside: store.DB(), Quote: quote, Param: func(int) string { return "?" }}}
	for _, s := range w.sides {
		eng, err := engine.New(s.b.Store(), engine.WithClock(func() time.Time { s.ticks++; return start.Add(time.Duration(s.ticks) * time.Second) }))
		fatalIf(rt, err)
		s.m, err = eng.Machine(context.Background(), def)
		fatalIf(rt, err)
	}
	return w
}

func (w *world) close() {
	for _, s := range w.sides {
		if s.tx != nil {
			_ = s.tx.Rollback()
		}
	}
	w.stop()
}

// machine is the machine calls go to: inside the open transaction, if there is one.
func (s *side) machine() *engine.Machine {
	if s.tx != nil {
		return s.m.In(s.tx.Tx)
	}
	return s.m
}

// reply is what must be equal of an answer.
type reply struct {
	ID, From, To, State string
	Version             int64
	Outcome             string
	First               string
	Kind                string
	Text                string
	ErrState            string
	ErrVersion          int64
	Allowed             []string
}

func replyOf(res engine.Result, err error) reply {
	r := reply{ID: res.ID, From: res.From, To: res.To, State: res.State, Version: res.Version, Outcome: res.Outcome.String()}
	if f := res.First; f != nil {
		r.First = fmt.Sprint(f.Version, f.Transition, f.From, f.To, f.At)
	}
	if err == nil {
		return r
	}
	r.Kind = "fatal"
	for _, kind := range kinds() {
		if errors.Is(err, kind) {
			r.Kind, r.Text = kind.Error(), err.Error()
		}
	}
	var detail *engine.Error
	if errors.As(err, &detail) {
		r.ErrState, r.ErrVersion, r.Allowed = detail.State, detail.Version, detail.Allowed
	}
	return r
}

// both makes a call on both sides and compares the answers.
func (w *world) both(rt *rapid.T, what string, call func(s *side) (engine.Result, error)) {
	var replies [2]reply
	for i, s := range w.sides {
		replies[i] = replyOf(call(s))
	}
	if diff := cmp.Diff(replies[0], replies[1]); diff != "" {
		rt.Fatalf("%s: memory and SQLite differ (-memory +SQLite):\n%s", what, diff)
	}
	rt.Logf("%s: %+v", what, replies[0])
}

func (w *world) options(rt *rapid.T) []engine.CallOption {
	var opts []engine.CallOption
	if key := rapid.SampledFrom([]string{"", "", "k1", "k2", "k3"}).Draw(rt, "key"); key != "" {
		opts = append(opts, engine.WithKey(key))
	}
	if v := rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 5}).Draw(rt, "version"); v != 0 {
		opts = append(opts, engine.WithVersion(v))
	}
	return opts
}

func (w *world) fire(rt *rapid.T) {
	t := rapid.SampledFrom(w.def.Transitions).Draw(rt, "transition")
	id := rapid.SampledFrom(w.ids).Draw(rt, "id")
	args := engine.Args{}
	for _, a := range t.Args {
		if !a.Optional || rapid.Bool().Draw(rt, "given") {
			args[a.Name] = value(rt, a.Type, a.Name)
		}
	}
	opts := w.options(rt)
	w.both(rt, fmt.Sprint("fire ", t.Name, " ", id, " ", args), func(s *side) (engine.Result, error) {
		return s.machine().Fire(context.Background(), t.Name, id, args, opts...)
	})
	w.both(rt, fmt.Sprint("can ", t.Name, " ", id, " ", args), func(s *side) (engine.Result, error) {
		return engine.Result{}, s.machine().Can(context.Background(), id, t.Name, args)
	})
}

func (w *world) create(rt *rapid.T) {
	row := engine.Row{"id": rapid.SampledFrom(w.ids).Draw(rt, "id")}
	for _, f := range w.def.Fields {
		if f.Default == nil && !f.Nullable || rapid.IntRange(0, 3).Draw(rt, "given") == 0 {
			row[f.Name] = value(rt, f.Type, f.Name)
		}
	}
	if len(w.def.Initial) > 1 && rapid.Bool().Draw(rt, "status") {
		row["status"] = rapid.SampledFrom(w.def.Initial).Draw(rt, "status")
	}
	opts := w.options(rt)
	w.both(rt, fmt.Sprint("create ", row), func(s *side) (engine.Result, error) {
		return s.machine().Create(context.Background(), row, opts...)
	})
}

// remove and put come from beside the engine, so not while a transaction is open.
func (w *world) remove(rt *rapid.T) {
	if w.inTx {
		rt.Skip()
	}
	id := rapid.SampledFrom(w.ids).Draw(rt, "id")
	for _, s := range w.sides {
		_ = s.b.Delete(context.Background(), w.def, id)
	}
	rt.Logf("delete %s", id)
}

func (w *world) put(rt *rapid.T) {
	if w.inTx || len(w.def.Unique) > 0 { // a constraint could stand in the way
		rt.Skip()
	}
	id := rapid.SampledFrom(w.ids).Draw(rt, "id")
	if _, err := w.sides[0].m.Get(context.Background(), id); err == nil {
		rt.Skip()
	}
	state := rapid.SampledFrom(w.def.States).Draw(rt, "state")
	raw := rapid.SampledFrom(append([]any{state.Value}, state.Aliases...)).Draw(rt, "raw")
	row := engine.Row{"id": id, "status": raw, "version": rapid.SampledFrom([]int64{1, 2, 9}).Draw(rt, "version")}
	for _, f := range w.def.Fields {
		row[f.Name] = value(rt, f.Type, f.Name)
	}
	for _, s := range w.sides {
		fatalIf(rt, s.b.Insert(context.Background(), w.def, row))
	}
	rt.Logf("put %v", row)
}

func (w *world) begin(rt *rapid.T) {
	if w.inTx {
		rt.Skip()
	}
	w.inTx = true
	for i, s := range w.sides {
		tx, err := s.b.Begin(context.Background(), []TxForm{OwnTx, StdTx}[i], 0)
		fatalIf(rt, err)
		s.tx = tx
	}
	rt.Logf("begin")
}

func (w *world) end(rt *rapid.T) {
	if !w.inTx {
		rt.Skip()
	}
	commit := rapid.Bool().Draw(rt, "commit")
	w.inTx = false
	for _, s := range w.sides {
		end := s.tx.Rollback
		if commit {
			end = s.tx.Commit
		}
		fatalIf(rt, end())
		s.tx = nil
	}
	rt.Logf("end, commit %v", commit)
}

// compare reads every row and journal on both sides.
func (w *world) compare(rt *rapid.T) {
	for _, id := range w.ids {
		var rows [2]engine.Row
		var journals [2][]engine.Entry
		for i, s := range w.sides {
			got, err := s.machine().Get(context.Background(), id)
			if err == nil {
				rows[i] = got.Row()
				rows[i]["status"], rows[i]["version"] = got.State, got.Version
			} else if !errors.Is(err, engine.ErrNotFound) {
				rt.Fatalf("Get %s: %v", id, err)
			}
			journals[i], err = s.machine().Journal(context.Background(), id)
			fatalIf(rt, err)
			for j := range journals[i] {
				e := &journals[i][j]
				e.Seq, e.Attempt = 0, ""
				if e.Key[0] == '#' {
					e.Key = "#"
				}
			}
		}
		same := cmp.Comparer(func(a, b decimal.Decimal) bool { return a.Equal(b) })
		if diff := cmp.Diff(rows[0], rows[1], same) + cmp.Diff(journals[0], journals[1]); diff != "" {
			rt.Fatalf("row %s differs (-memory +SQLite):\n%s", id, diff)
		}
	}
}
