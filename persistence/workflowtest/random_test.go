package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

// TestRandomDefinitions makes the same calls of a random definition on every store, and
// wants the oracle's answers from each. A failure prints what it takes to see it again.
func TestRandomDefinitions(t *testing.T) {
	seeds := make([]int64, 32)
	if *long {
		seeds = make([]int64, 2000)
	}
	if testing.Short() {
		seeds = seeds[:8]
	}
	for i := range seeds {
		seeds[i] = int64(i + 1)
	}
	if *seed != 0 {
		seeds = []int64{*seed}
	}
	sites := openSites(t)
	var group sync.WaitGroup
	queue := make(chan int64)
	for range 4 {
		group.Go(func() {
			for seed := range queue {
				runRandom(t, sites, seed)
			}
		})
	}
	for _, seed := range seeds {
		queue <- seed
	}
	close(queue)
	group.Wait()
}

// openSites opens each store that is there, and says which is not.
func openSites(t *testing.T) []*site {
	t.Helper()
	var sites []*site
	for _, k := range kinds() {
		if k.there() {
			sites = append(sites, bind(t, k.name, k.open(t)))
		} else {
			t.Run(k.name, func(t *testing.T) { k.open(t) })
		}
	}
	return sites
}

// trial is one definition on all stores, and the calls made so far.
type trial struct {
	*rand.Rand
	t       *testing.T
	seed    int64
	def     *definitions.Machine
	text    string
	o       *oracle
	sites   []*site
	m       []*engine.Machine
	log     []string
	stopped bool
}

func runRandom(t *testing.T, sites []*site, seed int64) {
	t.Helper()
	def, meaning, text := randomDefinition(seed)
	x := &trial{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), t: t, seed: seed, def: def, text: text, o: newOracle(def, meaning), sites: sites} //nolint:gosec // reproducible on purpose
	for _, s := range sites {
		if store, ok := s.Store().(interface {
			Migrate(ctx context.Context, defs ...*definitions.Machine) error
		}); ok {
			if err := store.Migrate(context.Background(), def); err != nil {
				x.fail("migrate on %s: %v", s.name, err)
				return
			}
		}
		m, err := s.eng.Machine(context.Background(), def)
		if err != nil {
			x.fail("bind on %s: %v", s.name, err)
			return
		}
		x.m = append(x.m, m)
	}
	for range 64 {
		if x.step(); x.stopped {
			return
		}
	}
}

func (x *trial) fail(format string, args ...any) {
	x.t.Errorf("seed %d: %s\n%s\n%s", x.seed, fmt.Sprintf(format, args...), x.text, strings.Join(x.log, "\n"))
	x.stopped = true
}

// step makes one call on one of three rows; a row that is not there is made first.
func (x *trial) step() {
	id := []string{"1", "2", "3"}[x.IntN(3)]
	switch {
	case x.o.rows[id] == nil && x.IntN(5) > 0:
		x.make(id)
	case x.IntN(8) == 0:
		x.inTx(id)
	default:
		x.call(id, x.m, x.o)
	}
	if x.IntN(4) == 0 {
		x.compare()
	}
}

// make creates a row, or finds it made elsewhere.
func (x *trial) make(id string) {
	row := map[string]any{"n": pick(x.Rand, []int64{0, 1, 4, math.MaxInt64}), "m": nil, "s": pick(x.Rand, []string{"a", "b", "c'"}), "u": nil}
	if x.IntN(2) == 0 {
		row["m"], row["u"] = int64(x.IntN(6)), "a"
	}
	full := engine.Row{"id": id}
	maps.Copy(full, row)
	state := x.def.States[x.IntN(len(x.def.States))]
	adopted := x.IntN(3) == 0
	if adopted {
		full["id"], full["version"] = idValue(x.def, id), int64(3)
		full["status"] = pick(x.Rand, append([]any{state.Value}, state.Aliases...))
		x.o.adopt(id, state.Name, 3, row)
	} else {
		full["status"] = pick(x.Rand, x.def.Initial)
		x.o.create(id, full["status"].(string), row)
		if !x.def.Journal.Enabled {
			delete(x.o.journal, id)
		}
	}
	x.log = append(x.log, fmt.Sprintf("make %v, adopted: %v", full, adopted))
	for i, m := range x.m {
		var err error
		if adopted {
			err = x.sites[i].Insert(context.Background(), x.def, full)
		} else {
			_, err = m.Create(context.Background(), maps.Clone(full))
		}
		if err != nil {
			x.fail("%s: %v", x.sites[i].name, err)
		}
	}
}

// random draws a call.
func (x *trial) random() call {
	t := &x.def.Transitions[x.IntN(len(x.def.Transitions))]
	c := call{transition: t.Name, args: map[string]any{"x": pick(x.Rand, []int64{0, 1, 2, 3, 7, -4, math.MaxInt64})}}
	if x.IntN(3) > 0 {
		c.args["y"] = pick(x.Rand, []string{"a", "b", "c'"})
	}
	if x.def.Journal.Enabled && (t.Key.Required || x.IntN(6) == 0) && x.IntN(20) > 0 {
		c.key = pick(x.Rand, []string{"k1", "k2", "k3", "k4", "k5", fmt.Sprint("k", x.IntN(1000))})
	}
	if x.IntN(5) == 0 {
		c.version = int64(1 + x.IntN(9))
	}
	return c
}

// call makes one call on every store at once.
func (x *trial) call(id string, machines []*engine.Machine, o *oracle) {
	c := x.random()
	want := o.fire(id, c, start)
	x.log = append(x.log, fmt.Sprintf("%s: %v -> %+v", id, c, want))
	answers := make([]answer, len(machines))
	var group sync.WaitGroup
	for i, m := range machines {
		group.Go(func() { answers[i] = fire(m, id, c) })
	}
	group.Wait()
	for i, got := range answers {
		if got != want {
			x.fail("%s\n got %+v\nwant %+v", x.sites[i].name, got, want)
		}
	}
}

// begin begins a transaction, and waits where SQLite does not: its BEGIN does not know
// how long the store would.
func (s *site) begin() (*storetest.Tx, error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		tx, err := s.Begin(context.Background(), s.txForm(), 0)
		if err == nil || time.Now().After(end) || !strings.Contains(err.Error(), "database is locked") {
			return tx, err
		}
	}
}

// inTx makes some calls in one transaction of a caller's, and keeps them or not.
func (x *trial) inTx(id string) {
	o, keep := x.o.clone(), x.IntN(2) == 0
	bound := make([]*engine.Machine, len(x.m))
	ends := make([]func() error, len(x.m))
	for i, s := range x.sites {
		tx, err := s.begin()
		if err != nil {
			x.fail("begin on %s: %v", s.name, err)
			for _, end := range ends[:i] {
				_ = end()
			}
			return
		}
		bound[i], ends[i] = x.m[i].In(tx.Tx), tx.Rollback
		if keep {
			ends[i] = tx.Commit
		}
	}
	x.log = append(x.log, fmt.Sprintf("in a transaction, kept: %v", keep))
	for range 1 + x.IntN(3) {
		x.call(id, bound, o)
	}
	for i, end := range ends {
		if err := end(); err != nil {
			x.fail("the transaction on %s ends with %v", x.sites[i].name, err)
		}
	}
	if keep {
		x.o = o
	}
}

// compare holds every row and journal against the oracle's.
func (x *trial) compare() {
	for _, id := range slices.Sorted(maps.Keys(x.o.rows)) {
		for i, m := range x.m {
			if diff := differs(m, x.o, id); diff != "" {
				x.fail("%s, row %s: %s", x.sites[i].name, id, diff)
			}
		}
	}
	for i, m := range x.m {
		if _, err := m.Get(context.Background(), "99"); !errors.Is(err, engine.ErrNotFound) {
			x.fail("%s: a row that is not there: %v", x.sites[i].name, err)
		}
	}
}
