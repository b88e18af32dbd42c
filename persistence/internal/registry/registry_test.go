package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
)

// machine is one over table t, with a status column of its own; no journal where that is
// empty.
func machine(name, journal string) *definitions.Machine {
	def := &definitions.Machine{Name: name}
	def.Table.Name, def.Table.Status.Name = "t", name
	def.Journal = definitions.Journal{Enabled: journal != "", Table: journal}
	return def
}

// join joins and wants an error with all of the parts, or none where there are no parts.
func join(t *testing.T, r *Registry, parts []string, defs ...*definitions.Machine) {
	t.Helper()
	before := r.Machines("t")
	foretold := r.Check(defs...)
	if now := r.Machines("t"); !slices.Equal(now, before) {
		t.Errorf("Check made %v of %v", now, before)
	}
	err := r.Join(defs...)
	if fmt.Sprint(foretold) != fmt.Sprint(err) {
		t.Errorf("Check = %v, Join = %v", foretold, err)
	}
	if len(parts) == 0 {
		if err != nil {
			t.Errorf("Join: %v", err)
		}
		return
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Join = %v, want it to say %q", err, part)
		}
	}
}

// holds checks which machines the table has.
func holds(t *testing.T, r *Registry, want ...string) {
	t.Helper()
	if got := r.Machines("t"); !slices.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
	for n := range Max {
		if len(want) > 0 && r.Machine("t", n) != want[min(n, len(want)-1)] {
			t.Errorf("Machine(%d) = %s of %v", n, r.Machine("t", n), want)
		}
	}
	if r.Shared("t") != (len(want) > 1) {
		t.Errorf("Shared = %v of %v", r.Shared("t"), want)
	}
}

func TestMachinesOfATableHaveOneJournal(t *testing.T) {
	t.Parallel()
	var r Registry
	holds(t, &r)
	join(t, &r, nil, machine("bare", ""))
	holds(t, &r)
	join(t, &r, nil, machine("a", "x"))
	join(t, &r, nil, machine("a", "x"))
	join(t, &r, nil, machine("a", "y")) // alone it may choose another
	holds(t, &r, "a")
	join(t, &r, []string{"machines a and b", "table t", "a writes the journal y", "b the journal x", "`journal:`"}, machine("b", "x"))
	holds(t, &r, "a")
	join(t, &r, []string{"machines a and c"}, machine("b", "y"), machine("c", "x"))
	holds(t, &r, "a") // all or none
	join(t, &r, nil, machine("b", "y"), machine("c", "y"), machine("other", ""), machine("d", "y"))
	join(t, &r, []string{"machine e", "[a b c d]"}, machine("e", "y"))
	join(t, &r, []string{"machines b and a"}, machine("a", "x"))
	join(t, &r, nil, machine("e", ""))
	holds(t, &r, "a", "b", "c", "d")
}

func TestStatusColumnIsOneMachines(t *testing.T) {
	t.Parallel()
	at := func(column, name, journal string) *definitions.Machine {
		def := machine(name, journal)
		def.Table.Status.Name = column
		return def
	}
	for _, second := range []string{"x", ""} { // with a journal, and without
		var r Registry
		join(t, &r, nil, at("s", "a", "x"))
		join(t, &r, []string{"machines a and b", "column s of table t", "one of its own"}, at("s", "b", second))
		join(t, &r, []string{"machines a and b", "column S"}, at("S", "b", second)) // as databases that fold names see it
		join(t, &r, []string{"machines b and c"}, at("u", "b", second), at("u", "c", "x"))
		join(t, &r, []string{"machines c and b"}, at("u", "c", "x"), at("u", "b", second))
		join(t, &r, nil, at("s", "a", "x"), at("u", "b", second))
		join(t, &r, nil, at("v", "a", "x"), at("s", "c", "x")) // it has left the column
		other := at("s", "d", second)
		other.Table.Name = "elsewhere"
		join(t, &r, nil, other)
	}
	var r Registry
	join(t, &r, nil, at("s", "a", ""))
	join(t, &r, []string{"machines a and b"}, at("s", "b", ""))
	join(t, &r, nil, at("v", "a", ""), at("s", "b", ""))
}

func TestNameInAJournalIsOneTables(t *testing.T) {
	t.Parallel()
	var r Registry
	over := func(table, name, journal string) *definitions.Machine {
		def := machine(name, journal)
		def.Table.Name = table
		return def
	}
	join(t, &r, nil, machine("a", "x"), over("u", "a", "y"), over("u", "b", "y"), over("u", "c", ""))
	join(t, &r, []string{"machine a", "table t", "table v", "one journal, x", "`journal:`"}, over("v", "a", "x"))
	join(t, &r, []string{"machine d", "table v", "table w"}, over("v", "d", "x"), over("w", "d", "x"))
	join(t, &r, nil, over("v", "b", "x"), over("v", "a", ""), over("w", "a", "z"))
	holds(t, &r, "a")
}
