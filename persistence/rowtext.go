package persistence

import (
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// readText reads the row's columns; locked appends the dialect's locking clause.
func (t *table) readText(locked bool) statement {
	b := &builder{d: t.d}
	b.sql("SELECT ")
	t.rowColumns(b, "")
	b.sql(" FROM ").table(t.def.Table.Name).sql(" WHERE ")
	t.whereID(b)
	if locked {
		b.sql(t.f.LockRead)
	}
	return b.statement()
}

// stateText reads status and version, locking the row where the dialect needs it.
func (t *table) stateText() statement {
	b := &builder{d: t.d}
	b.sql("SELECT ").name(t.def.Table.Status.Name).sql(", ").name(t.def.Table.Version)
	b.sql(" FROM ").table(t.def.Table.Name).sql(" WHERE ")
	t.whereID(b)
	b.sql(t.f.LockRead)
	return b.statement()
}

// takeLockText takes the database's write lock without changing anything.
func (t *table) takeLockText() statement {
	b := &builder{d: t.d}
	version := t.d.Quote(t.def.Table.Version)
	b.sql("UPDATE ").table(t.def.Table.Name).sql(" SET ", version, " = ", version, " WHERE 1 = 0")
	return b.statement()
}

// insertText inserts the business row.
func (t *table) insertText() statement {
	b := &builder{d: t.d}
	b.sql("INSERT INTO ").table(t.def.Table.Name).sql(" (")
	t.rowColumns(b, "")
	b.sql(") VALUES (").param(func(v *values) any { return v.id }).sql(", ")
	b.param(func(v *values) any { return t.def.States[v.create.State].Value }).sql(", ")
	b.param(func(v *values) any { return v.edge.version })
	for i := range t.def.Fields {
		b.sql(", ").param(func(v *values) any { return bindValue(v.create.Values[i]) })
	}
	b.sql(")")
	return b.statement()
}

// existsText asks whether the id, or a declared unique key, is taken.
func (t *table) existsText() statement {
	b := &builder{d: t.d}
	t.existing(b)
	return b.statement()
}

// existing appends the SELECT of the rows that a creation's id or declared keys name.
func (t *table) existing(b *builder) {
	b.sql("SELECT 1 FROM ").table(t.def.Table.Name).sql(" WHERE ")
	t.whereID(b)
	for key := range t.def.Unique {
		b.sql(" OR ")
		t.whereUnique(b, key, func(v *values, field int) any { return v.create.Values[field] })
	}
}

// twinText finds the id of the row that holds a declared unique key.
func (t *table) twinText() statement {
	b := &builder{d: t.d}
	b.sql("SELECT ").name(t.def.Table.ID.Name).sql(" FROM ").table(t.def.Table.Name).sql(" WHERE ")
	for key := range t.def.Unique {
		if key > 0 {
			b.sql(" OR ")
		}
		t.whereUnique(b, key, func(v *values, field int) any { return v.q.Values[field] })
	}
	return b.statement()
}

// whereUnique compares the columns of a unique key as its index does; NULL equals nothing.
func (t *table) whereUnique(b *builder, key int, value func(v *values, field int) any) {
	for i, name := range t.def.Unique[key] {
		if i > 0 {
			b.sql(" AND ")
		} else {
			b.sql("(")
		}
		at := slices.IndexFunc(t.def.Fields, func(f definitions.Field) bool { return f.Name == name })
		f := &t.def.Fields[at]
		bound := func(v *values) any { return bindValue(value(v, at)) }
		if t.comparisons != nil && t.comparisons[key][i] != nil {
			b.sql(t.comparisons[key][i](t.d.Quote(f.Column), func() string { return b.placeholder(bound) }))
			continue
		}
		b.equal(t.d.Quote(f.Column), f.Type == expr.String, bound)
	}
	b.sql(")")
}

// lastVersionText is the last version the journal holds for the id: a row that was
// deleted and created again goes on from there.
func (t *table) lastVersionText() statement {
	b := &builder{d: t.d}
	b.sql("SELECT COALESCE(MAX(version), 0) FROM ").table(t.def.Journal.Table).sql(" WHERE ")
	t.siblings(b)
	b.sql(" AND entity_id = ").compared(func(v *values) any { return v.entity })
	return b.statement()
}

// keySeenText asks whether the journal holds the key.
func (t *table) keySeenText() statement {
	b := &builder{d: t.d}
	b.sql("SELECT 1 FROM ").table(t.def.Journal.Table)
	b.sql(" WHERE machine = ").compared(constant(t.def.Name)).sql(" AND entity_id = ").compared(func(v *values) any { return v.entity })
	b.sql(" AND ").name("key").sql(" = ").compared(func(v *values) any { return v.create.Key })
	return b.statement()
}

// journalText lists the entries of a row.
func (t *table) journalText() statement {
	b := &builder{d: t.d}
	b.sql("SELECT ").names(entryColumns).sql(" FROM ").table(t.def.Journal.Table)
	b.sql(" WHERE machine = ").compared(constant(t.def.Name)).sql(" AND entity_id = ").compared(func(v *values) any { return v.entity })
	b.sql(" ORDER BY version")
	return b.statement()
}

// idValue is the id in its column's type.
func (t *table) idValue(id string) any {
	if t.def.Table.ID.Type == expr.Int {
		return mustInt(id)
	}
	return id
}
