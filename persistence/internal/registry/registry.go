// Package registry knows which machines of a store stand over the same table.
package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fsmgen/fsmgen/definitions"
)

// Max is how many machines with a journal may share one table.
const Max = 4

// Registry remembers the journaled machines of each table. They share its version, so
// "the last version" and "the last creation" of a row count over all of them, and can
// only be counted in one journal. Machines without a journal leave nothing to count.
// In a journal a machine is known by its name, so that no two tables may have one of the
// same name there: the rows of the one would pass for those of the other.
// A table is known by its name as definitions write it: "orders" and "public.orders" are
// two. Which they are only the database could say, and for a table that is yet to be made
// not even that.
// The zero value is empty; it is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	tables map[string][]*definitions.Machine
}

// Join adds machines to their tables, all or none. Of two definitions of one name the
// newer counts.
func (r *Registry) Join(defs ...*definitions.Machine) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	joined, err := r.joined(defs)
	if err != nil {
		return err
	}
	if r.tables == nil {
		r.tables = map[string][]*definitions.Machine{}
	}
	maps.Copy(r.tables, joined)
	return nil
}

// Check reports why machines cannot join, and leaves everything as it is.
func (r *Registry) Check(defs ...*definitions.Machine) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, err := r.joined(defs)
	return err
}

// joined gives the tables that would change.
func (r *Registry) joined(defs []*definitions.Machine) (map[string][]*definitions.Machine, error) {
	joined := map[string][]*definitions.Machine{}
	for _, def := range defs {
		if !def.Journal.Enabled {
			continue
		}
		if err := errors.Join(elsewhere(r.tables, def), elsewhere(joined, def)); err != nil {
			return nil, err
		}
		table := def.Table.Name
		present, ok := joined[table]
		if !ok {
			present = r.tables[table]
		}
		present, err := with(present, def)
		if err != nil {
			return nil, err
		}
		joined[table] = present
	}
	return joined, nil
}

// elsewhere refuses a machine whose name stands for another table in its journal.
func elsewhere(tables map[string][]*definitions.Machine, def *definitions.Machine) error {
	for table, present := range tables {
		for _, other := range present {
			if table != def.Table.Name && other.Name == def.Name && other.Journal.Table == def.Journal.Table {
				return fmt.Errorf("machine %s stands over table %s and over table %s, and writes one journal, %s: a row of the one would pass for the row of the same id of the other; "+
					"give one of them another name, or another table under `journal:`", def.Name, table, def.Table.Name, def.Journal.Table)
			}
		}
	}
	return nil
}

// with gives a copy of the machines of a table in which def is one of them.
func with(present []*definitions.Machine, def *definitions.Machine) ([]*definitions.Machine, error) {
	out, known := slices.Clone(present), false
	for i, other := range present {
		if other.Name == def.Name {
			out[i], known = def, true
			continue
		}
		if other.Journal.Table != def.Journal.Table {
			return nil, fmt.Errorf("machines %s and %s share table %s, but %s writes the journal %s and %s the journal %s: "+
				"versions and creations of a row are counted in one journal; name the same table under `journal:` in both definitions",
				other.Name, def.Name, def.Table.Name, other.Name, other.Journal.Table, def.Name, def.Journal.Table)
		}
	}
	switch {
	case known:
		return out, nil
	case len(out) == Max:
		return nil, fmt.Errorf("machine %s cannot join table %s, which %s share already: at most %d machines with a journal may stand over one table",
			def.Name, def.Table.Name, names(out), Max)
	}
	return append(out, def), nil
}

// Machines gives the names of the journaled machines over a table, in the order in which
// they came.
func (r *Registry) Machines(table string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return names(r.tables[table])
}

// Machine is the n-th journaled machine over a table that has one, or the last where
// there are fewer.
func (r *Registry) Machine(table string, n int) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	present := r.tables[table]
	return present[min(n, len(present)-1)].Name
}

// Shared reports whether more than one journaled machine stands over a table.
func (r *Registry) Shared(table string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.tables[table]) > 1
}

func names(defs []*definitions.Machine) []string {
	out := make([]string, len(defs))
	for i, def := range defs {
		out[i] = def.Name
	}
	return out
}
