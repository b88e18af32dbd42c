// Package registry knows which machines of a store stand over the same table.
package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fsmgen/fsmgen/definitions"
)

// Max is how many machines with a journal may share one table.
const Max = 4

// Registry remembers the machines of each table. Those with a journal share its version, so
// "the last version" and "the last creation" of a row count over all of them, and can
// only be counted in one journal. Machines without a journal leave nothing to count. Each
// has a status column of its own: one that two move is nowhere that both could know of.
// In a journal a machine is known by its name, so that no two tables may have one of the
// same name there: the rows of the one would pass for those of the other.
// A table is known by its name as definitions write it: "orders" and "public.orders" are
// two. Which they are only the database could say, and for a table that is yet to be made
// not even that.
// The zero value is empty; it is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	tables places // with a journal
	bare   places // without one
}

// places are machines by table.
type places map[string][]*definitions.Machine

// Join adds machines to their tables, all or none. Of two definitions of one name the
// newer counts.
func (r *Registry) Join(defs ...*definitions.Machine) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	tables, bare, err := r.joined(defs)
	if err == nil {
		r.tables, r.bare = tables, bare
	}
	return err
}

// Check reports why machines cannot join, and leaves everything as it is.
func (r *Registry) Check(defs ...*definitions.Machine) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, _, err := r.joined(defs)
	return err
}

// joined gives the machines as they would be.
func (r *Registry) joined(defs []*definitions.Machine) (tables, bare places, err error) {
	tables, bare = places{}, places{}
	maps.Copy(tables, r.tables)
	maps.Copy(bare, r.bare)
	for _, def := range defs {
		table := def.Table.Name
		for _, other := range slices.Concat(tables[table], bare[table]) {
			if other.Name != def.Name && strings.EqualFold(other.Table.Status.Name, def.Table.Status.Name) {
				return nil, nil, fmt.Errorf("machines %s and %s both move column %s of table %s: a state that the one reaches is no step of the other; "+
					"give one of its own to each, under `status:`", other.Name, def.Name, def.Table.Status.Name, table)
			}
		}
		if !def.Journal.Enabled {
			bare[table], _ = put(bare[table], def)
			continue
		}
		if err := elsewhere(tables, def); err != nil {
			return nil, nil, err
		}
		if tables[table], err = with(tables[table], def); err != nil {
			return nil, nil, err
		}
	}
	return tables, bare, nil
}

// put gives a copy in which def is one of the machines.
func put(present []*definitions.Machine, def *definitions.Machine) (_ []*definitions.Machine, known bool) {
	out := slices.Clone(present)
	if i := slices.IndexFunc(out, func(other *definitions.Machine) bool { return other.Name == def.Name }); i >= 0 {
		out[i] = def
		return out, true
	}
	return append(out, def), false
}

// elsewhere refuses a machine whose name stands for another table in its journal.
func elsewhere(tables places, def *definitions.Machine) error {
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
	for _, other := range present {
		if other.Name != def.Name && other.Journal.Table != def.Journal.Table {
			return nil, fmt.Errorf("machines %s and %s share table %s, but %s writes the journal %s and %s the journal %s: "+
				"versions and creations of a row are counted in one journal; name the same table under `journal:` in both definitions",
				other.Name, def.Name, def.Table.Name, other.Name, other.Journal.Table, def.Name, def.Journal.Table)
		}
	}
	out, known := put(present, def)
	if !known && len(present) == Max {
		return nil, fmt.Errorf("machine %s cannot join table %s, which %s share already: at most %d machines with a journal may stand over one table",
			def.Name, def.Table.Name, names(present), Max)
	}
	return out, nil
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
