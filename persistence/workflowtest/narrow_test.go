package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// narrowTable is a table of the user's own, whose columns take less than their types.
func narrowTable(kind string) string {
	text := "CREATE TABLE narrows (id VARCHAR(255) PRIMARY KEY, status VARCHAR(255) NOT NULL, version BIGINT NOT NULL DEFAULT 1, " +
		"n INT NOT NULL, s VARCHAR(20) NOT NULL, d NUMERIC(10,2) NOT NULL, e NUMERIC(18,6) NOT NULL)"
	if kind == "mariadb" {
		text += " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	}
	return text
}

type narrowCase struct {
	n    int64
	s, d string
	fits bool
}

func narrowCases() []narrowCase {
	long := strings.Repeat("支", 20)
	return []narrowCase{
		{math.MaxInt32, long, "99999999.99", true},
		{math.MinInt32, "", "-99999999.99", true},
		{math.MaxInt32 + 1, "", "0", false},
		{math.MinInt32 - 1, "", "0", false},
		{math.MaxInt64, "", "0", false},
		{8, long + "x", "0", false},
		{8, strings.Repeat(" ", 21), "0", false},
		{8, "", "100000000", false},
		{8, "", "0.001", false},
		{8, "", "1.005", false},
		{8, "x ", "-0.01", true},
	}
}

// TestNarrowColumns: what a column does not take is rejected, never cut, rounded,
// clamped or an error of the database, and Can says it before.
func TestNarrowColumns(t *testing.T) {
	def := load(t, "narrow")
	for _, k := range kinds()[2:] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := k.open(t)
			_, err := p.db.ExecContext(t.Context(), narrowTable(k.name))
			check(t, err)
			s := bind(t, k.name, p, def)
			s.create(t, s.m, engine.Row{"id": "a"})
			for _, c := range narrowCases() {
				for _, transition := range []string{"put", "add", "move"} {
					s.narrow(t, transition, c)
				}
				s.narrowCreate(t, c)
			}
		})
	}
}

// narrowCreate makes a row with the values: what its columns do not take is refused
// before anything is sent.
func (s *site) narrowCreate(t testing.TB, c narrowCase) {
	t.Helper()
	id := fmt.Sprintf("row-%v-%v-%v", c.n, len(c.s), c.d)
	_, err := s.m.Create(t.Context(), engine.Row{"id": id, "n": c.n, "s": c.s, "d": c.d})
	switch {
	case c.fits && err != nil:
		t.Errorf("create %+v: %v", c, err)
	case !c.fits && !errors.Is(err, engine.ErrInvalidArgs):
		t.Errorf("create %+v: want ErrInvalidArgs, got %v", c, err)
	}
}

// narrow makes a call on the row "a", which is on and empty, before and after.
func (s *site) narrow(t testing.TB, transition string, c narrowCase) {
	t.Helper()
	args := engine.Args{"n": c.n, "s": c.s, "d": c.d}
	fits := c.fits
	var opts []engine.CallOption
	if transition == "move" {
		opts = append(opts, engine.WithKey(strings.Repeat(".", int(s.clock.Add(1)))))
		if c.n <= 7 { // does not write the number
			fits = len([]rune(c.s)) <= 20
		} else { // does not write the text
			fits = fits || c.n <= math.MaxInt32 && c.d == "0"
		}
	}
	before, err := s.m.Get(context.Background(), "a")
	check(t, err)
	can := s.m.Can(context.Background(), "a", transition, args)
	if (can == nil) != fits || can != nil && !errors.Is(can, engine.ErrRejected) {
		t.Errorf("Can(%s %+v) = %v, want it to fit: %v", transition, c, can, fits)
	}
	if !fits {
		s.refuse(t, engine.ErrRejected, s.m, transition, "a", args, opts...)
		tx, err := s.Begin(context.Background(), s.txForm(), 0)
		check(t, err)
		s.refuse(t, engine.ErrRejected, s.m.In(tx.Tx), transition, "a", args, opts...)
		check(t, tx.Commit())
		s.wantRow(t, s.m, "a", "on", before.Version, int(before.Version), engine.Row{"n": int64(0), "s": "", "d": dec("0")})
		return
	}
	s.apply(t, s.m, transition, "a", args, opts...)
	want := engine.Row{"n": c.n, "s": c.s, "d": dec(c.d)}
	if transition == "move" && c.n > 7 {
		want["s"] = ""
	} else if transition == "move" {
		want["n"] = int64(0)
	}
	s.wantRow(t, s.m, "a", "off", before.Version+1, int(before.Version)+1, want)
	s.apply(t, s.m, "back", "a", nil)
}

// TestNarrowScale: digits that the definition does not allow, on every store.
func TestNarrowScale(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "a"})
		s.refuse(t, engine.ErrRejected, s.m, "scale", "a", engine.Args{"d": "0.25"})
		s.apply(t, s.m, "scale", "a", engine.Args{"d": "-0.50"})
		s.wantRow(t, s.m, "a", "off", 2, 2, engine.Row{"e": dec("-0.5")})
		_, err := s.m.Create(t.Context(), engine.Row{"id": "b", "e": "0.25"})
		wantError(t, err, engine.ErrInvalidArgs)
	}, load(t, "narrow"))
}

const countdown = `
machine: countdown
table: {name: countdowns}
fields: {n: {type: int, default: 0}}
initial: a
states: {a: , b: , c: {final: true}}
transitions:
  pay:  {from: a, to: b}
  ship: {from: [a, b], to: c}
  add:  {from: a, to: a, key: required, set: {n: n + 1}}
`

// TestNarrowVersion: a row at the last version that its column holds is told so, and so is
// a creation that would follow it.
func TestNarrowVersion(t *testing.T) {
	const last = math.MaxInt16
	bare := parse(t, strings.NewReplacer("countdown", "bare", "  add:  {from: a, to: a, key: required, set: {n: n + 1}}\n", "journal: false\n").Replace(countdown))
	for _, k := range kinds()[2:] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := k.open(t)
			for _, table := range []string{"countdowns", "bares"} {
				_, err := p.db.ExecContext(t.Context(), strings.NewReplacer("narrows", table, "version BIGINT", "version SMALLINT").Replace(narrowTable(k.name)))
				check(t, err)
				for _, column := range []string{"s", "d", "e"} {
					_, err = p.db.ExecContext(t.Context(), "ALTER TABLE "+table+" DROP COLUMN "+column)
					check(t, err)
				}
			}
			s := bind(t, k.name, p, parse(t, countdown), bare)
			for _, m := range s.machines {
				check(t, s.Insert(t.Context(), m.Definition(), engine.Row{"id": "x", "status": "a", "version": int64(last), "n": int64(0)}))
			}
			refused := func(what string, err error) {
				t.Helper()
				if err == nil || errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "the last version there is") || !strings.Contains(err.Error(), "wider") {
					t.Errorf("%s: %v", what, err)
				}
			}
			calls := func(what string, m *engine.Machine) {
				t.Helper()
				for _, transition := range []string{"pay", "ship"} {
					_, err := m.Fire(t.Context(), transition, "x", nil)
					refused(what+transition, err)
					_, err = m.Fire(t.Context(), transition, "x", nil, engine.WithVersion(last))
					refused(what+transition+" at its version", err)
				}
			}
			add := func(m *engine.Machine) {
				t.Helper()
				_, err := m.Fire(t.Context(), "add", "x", nil, engine.WithKey("k"))
				refused("add", err)
			}
			calls("", s.m)
			calls("bare ", s.machines["bare"])
			add(s.m)
			var together sync.WaitGroup
			for range 8 {
				together.Go(func() { calls("together ", s.m); add(s.m) })
			}
			together.Wait()
			tx, err := s.Begin(t.Context(), s.txForm(), 0)
			check(t, err)
			calls("in a transaction ", s.m.In(tx.Tx))
			add(s.m.In(tx.Tx))
			check(t, tx.Rollback())
			s.wantRow(t, s.m, "x", "a", last, 0, engine.Row{"n": int64(0)})

			check(t, s.Update(t.Context(), s.m.Definition(), "x", engine.Row{"version": int64(last - 1)}))
			s.apply(t, s.m, "pay", "x", nil)
			_, err = s.db.ExecContext(t.Context(), "DELETE FROM countdowns")
			check(t, err)
			_, err = s.m.Create(t.Context(), engine.Row{"id": "x"})
			refused("create", err)
			if !strings.Contains(err.Error(), fmt.Sprint(last)) {
				t.Error(err)
			}
		})
	}
}
