package persistence

import "github.com/fsmgen/fsmgen/persistence/internal/registry"

// siblings restricts journal rows to those of all machines over the table. Which they
// are is asked at every call, since another may be bound later.
func (t *table) siblings(b *builder) {
	b.name("machine").sql(" IN (")
	for n := range registry.Max {
		if n > 0 {
			b.sql(", ")
		}
		b.compared(func(*values) any { return t.s.machines.Machine(t.def.Table.Name, n) })
	}
	b.sql(")")
}
