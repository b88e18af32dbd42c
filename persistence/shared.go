package persistence

import (
	"fmt"
	"slices"
	"sync"
)

// maxShared is how many machines may share one table.
const maxShared = 4

// shared remembers which machines of a store stand over the same table. They share
// its version, so "the last version" and "the last creation" count over all of them.
type shared struct {
	mu     sync.RWMutex
	tables map[string][]string
}

// join adds a machine to its table.
func (s *shared) join(table, machine string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables == nil {
		s.tables = map[string][]string{}
	}
	names := s.tables[table]
	switch {
	case slices.Contains(names, machine):
		return nil
	case len(names) == maxShared:
		return fmt.Errorf("table %s is shared by %v already: at most %d machines may stand over one table", table, names, maxShared)
	}
	s.tables[table] = append(slices.Clone(names), machine)
	return nil
}

// machine is the n-th machine over a table, or the last where there are fewer.
func (s *shared) machine(table string, n int) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := s.tables[table]
	return names[min(n, len(names)-1)]
}

// alone reports whether only one machine stands over a table.
func (s *shared) alone(table string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.tables[table]) == 1
}

// siblings restricts journal rows to those of all machines over the table. Which they
// are is asked at every call, since another may be bound later.
func (t *table) siblings(b *builder) {
	b.name("machine").sql(" IN (")
	for n := range maxShared {
		if n > 0 {
			b.sql(", ")
		}
		b.compared(func(*values) any { return t.s.shared.machine(t.def.Table.Name, n) })
	}
	b.sql(")")
}
