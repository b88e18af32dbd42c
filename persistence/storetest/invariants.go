package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// checkInvariants holds the raw rows against the raw journal, and what the engine
// reads against both.
func (e *env) checkInvariants() {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e.checkIdle()
	tables := map[string][]*definitions.Machine{}
	for _, def := range e.defs {
		tables[def.Table.Name] = append(tables[def.Table.Name], def)
	}
	for _, defs := range tables {
		if len(defs) > 1 {
			e.checkShared(ctx, defs)
			continue
		}
		e.checkMachine(ctx, defs[0])
	}
	e.checkIdle()
}

// checkMachine checks every row of a machine that has its table for itself.
func (e *env) checkMachine(ctx context.Context, def *definitions.Machine) {
	e.Helper()
	rows, err := e.b.Rows(ctx, def)
	e.mustCheck(err)
	journal, err := e.b.Journal(ctx, def)
	e.mustCheck(err)
	for id := range rows {
		if _, ok := journal[id]; !ok && def.Journal.Enabled && e.exempt[def.Name+"/"+id] == 0 {
			e.Errorf("invariant: %s %q is in the table, and its journal is empty", def.Name, id)
		}
	}
	for id, entries := range journal {
		e.checkEntity(ctx, def, id, rows, entries)
	}
}

// checkShared checks the rows of several machines over one table: their versions count
// over all of the machines.
func (e *env) checkShared(ctx context.Context, defs []*definitions.Machine) {
	e.Helper()
	versions := map[string][]int64{}
	for _, def := range defs {
		journal, err := e.b.Journal(ctx, def)
		e.mustCheck(err)
		for id, entries := range journal {
			for _, entry := range entries {
				versions[id] = append(versions[id], entry.Version)
				if entry.Transition != "" && !legal(def, entry) {
					e.Errorf("invariant: %s %q: the definition has no edge %+v", def.Name, id, entry)
				}
			}
		}
	}
	rows, err := e.b.Rows(ctx, defs[0])
	e.mustCheck(err)
	for id, list := range versions {
		slices.Sort(list)
		for i, v := range list {
			if v != int64(i+1) {
				e.Errorf("invariant: table %s, %q: versions %v", defs[0].Table.Name, id, list)
				break
			}
		}
		if row, ok := rows[id]; ok && row.Version != list[len(list)-1] {
			e.Errorf("invariant: table %s, %q is at %v, its journals end at %d", defs[0].Table.Name, id, row.Version, list[len(list)-1])
		}
	}
}

func (e *env) mustCheck(err error) {
	e.Helper()
	if err != nil {
		e.Errorf("invariants could not be checked: %v", err)
	}
}

// checkIdle waits a moment for connections that a cancelled context gives back in
// the background, and then wants none in use.
func (e *env) checkIdle() {
	e.Helper()
	for end := time.Now().Add(2 * time.Second); e.b.InUse() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			e.Errorf("invariant: %d connections are still in use", e.b.InUse())
			return
		}
	}
}

func (e *env) checkEntity(ctx context.Context, def *definitions.Machine, id string, rows map[string]RawRow, entries []RawEntry) {
	e.Helper()
	exempt := e.exempt[def.Name+"/"+id]
	wrong := func(format string, args ...any) {
		e.Helper()
		e.Errorf("invariant: %s %q: %s; journal: %+v; row: %+v", def.Name, id, fmt.Sprintf(format, args...), entries, rows[id])
	}
	keys := map[string]bool{}
	for i, entry := range entries {
		if keys[entry.Key] || entry.Key == "" {
			wrong("key %q twice, or empty", entry.Key)
		}
		keys[entry.Key] = true
		if exempt == bent {
			continue
		}
		if err := linked(def, entries, i, exempt); err != nil {
			wrong("%v", err)
		}
	}
	row, found := rows[id]
	if found && exempt != bent {
		last := entries[len(entries)-1]
		if state := stateOfRaw(def, row.Status); row.Version != last.Version || state != last.To {
			wrong("the row is not where its last entry left it")
		}
	}
	e.checkReads(ctx, def, id, found && exempt != bent, entries, wrong)
}

// linked holds entry i against the one before it.
func linked(def *definitions.Machine, entries []RawEntry, i int, exempt exemption) error {
	entry := entries[i]
	creation := entry.Transition == ""
	switch {
	case creation && (entry.From != "" || !slices.Contains(def.Initial, entry.To)):
		return fmt.Errorf("creation %+v does not begin in an initial state", entry)
	case !creation && !legal(def, entry):
		return fmt.Errorf("the definition has no edge %+v", entry)
	case i == 0 && exempt == 0 && (!creation || entry.Version != 1):
		return fmt.Errorf("the first entry %+v is not the creation at version 1", entry)
	case i > 0 && entry.Version != entries[i-1].Version+1:
		return fmt.Errorf("version %d follows %d", entry.Version, entries[i-1].Version)
	case i > 0 && !creation && entry.From != entries[i-1].To:
		return fmt.Errorf("%+v does not begin where the one before ended", entry)
	}
	return nil
}

// legal reports whether the definition has the edge.
func legal(def *definitions.Machine, entry RawEntry) bool {
	t, ok := def.Transition(entry.Transition)
	if !ok {
		return false
	}
	return slices.ContainsFunc(t.Moves, func(mv definitions.Move) bool {
		return slices.Contains(mv.From, entry.From) &&
			slices.ContainsFunc(mv.Targets, func(target definitions.Target) bool { return target.State == entry.To })
	})
}

// stateOfRaw is the name of the state a status column's value stands for.
func stateOfRaw(def *definitions.Machine, raw any) string {
	for _, s := range def.States {
		if s.Value == raw || slices.Contains(s.Aliases, raw) {
			return s.Name
		}
	}
	return ""
}

// checkReads: the engine reads what is there.
func (e *env) checkReads(ctx context.Context, def *definitions.Machine, id string, whole bool, entries []RawEntry, wrong func(string, ...any)) {
	e.Helper()
	m := e.machines[def.Name]
	read, err := m.Journal(ctx, id)
	if err != nil {
		wrong("Journal: %v", err)
		return
	}
	same := slices.EqualFunc(read, entries, func(a engine.Entry, b RawEntry) bool {
		return a.Version == b.Version && a.Transition == b.Transition && a.From == b.From && a.To == b.To && a.Key == b.Key
	})
	if !same {
		wrong("Journal reads %+v", read)
	}
	if !whole {
		return
	}
	if row, err := m.Get(ctx, id); err != nil || row.Version != entries[len(entries)-1].Version {
		wrong("Get reads %+v, %v", row, err)
	}
}
