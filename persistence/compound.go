package persistence

import (
	"strings"
	"sync/atomic"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// Variables of a compound. They would hide columns of the same name.
const (
	varVersion = "fsmgen_v"
	varFrom    = "fsmgen_from" // the status before, where several sources need it
	varTo      = "fsmgen_to"   // the status after, where the row decides it
)

// Compounder is a Dialect with [Features.Compound]. A compound carries its own COMMIT,
// as a single UPDATE does, so one that waits for a row would apply it after its caller
// gave up. It therefore waits only for callers who cannot; for others it fails where
// the row is held, and the call is run again as a transaction, which ends with its
// connection.
type Compounder interface {
	// Held reports whether err says that another transaction holds the row.
	Held(err error) bool
	// Committing says what an error of a statement means that carries the COMMIT.
	Committing(err error) engine.Class
	// NoWait comes before a statement that must not wait for a row.
	NoWait() string
	// NoWaitTable comes before one that must not wait for a table.
	NoWaitTable() string
}

// compoundShapes are the texts of a transition that differ: with a version named, and
// waiting for the row.
type compoundShapes [2][2]atomic.Pointer[statement]

// compoundText returns the compound of a transition, built at its first use.
func (t *table) compoundText(i int, p *plan, named, wait bool) *statement {
	slot := &t.compounds[i][index(named)][index(wait)]
	if st := slot.Load(); st != nil {
		return st
	}
	st := t.buildCompound(p, named, wait)
	slot.Store(&st)
	return &st
}

// buildCompound makes one statement of a whole unit: its transaction, the CAS, the
// journal row and the commit, in one round trip (MariaDB). The answer is selected
// after COMMIT, so that an error of COMMIT comes instead of it. LAST_INSERT_ID is
// taken right after the CAS: the journal's own overwrites it.
func (t *table) buildCompound(p *plan, named, wait bool) statement {
	noWait := ""
	if !wait {
		noWait = t.d.(Compounder).NoWait() //nolint:errcheck // Features.Compound says that it is one
	}
	cas := &p.whole.any
	if named {
		cas = &p.whole.named
	}
	b := &builder{d: t.d}
	b.sql("BEGIN NOT ATOMIC DECLARE ", varVersion, " BIGINT; ")
	t.declareStatus(b, varFrom, p.single < 0)
	t.declareStatus(b, varTo, p.whole.target < 0)
	b.sql("DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; ")
	b.sql(strings.Join(beginCommitted, "; "), "; ")
	if p.single < 0 {
		t.readStatus(b.sql(noWait), varFrom, t.f.LockRead)
	}
	b.sql(noWait, cas.text, "; ")
	b.binds = append(b.binds, cas.binds...)
	b.sql("IF ROW_COUNT() = 1 THEN SET ", varVersion, " = CAST(LAST_INSERT_ID() AS SIGNED); ")
	if p.whole.target < 0 {
		t.readStatus(b, varTo, "")
	}
	if t.triggered {
		t.compoundAsWritten(b, p)
	}
	if t.def.Journal.Enabled {
		t.compoundRecord(b.sql(noWait), p)
	}
	b.sql("COMMIT; ELSE ROLLBACK; END IF; SELECT ", varVersion)
	if p.single < 0 {
		b.sql(", ", varFrom)
	}
	if p.whole.target < 0 {
		b.sql(", ", varTo)
	}
	b.sql("; END")
	return b.statement()
}

func (t *table) declareStatus(b *builder, name string, needed bool) {
	switch {
	case !needed:
	case t.def.Table.Status.Type == expr.Int:
		b.sql("DECLARE ", name, " BIGINT; ")
	default:
		b.sql("DECLARE ", name, " VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin; ")
	}
}

func (t *table) readStatus(b *builder, into, lock string) {
	b.sql("SELECT ").name(t.def.Table.Status.Name).sql(" INTO ", into, " FROM ").table(t.def.Table.Name).sql(" WHERE ")
	t.whereID(b)
	b.sql(lock, "; ")
}

// compoundAsWritten checks what a trigger may have made of the row.
func (t *table) compoundAsWritten(b *builder, p *plan) {
	b.sql("IF NOT EXISTS (SELECT 1 FROM ").table(t.def.Table.Name).sql(" WHERE ")
	t.whereID(b)
	b.sql(" AND ").name(t.def.Table.Version).sql(" = ", varVersion)
	if p.whole.target >= 0 {
		b.sql(" AND ").name(t.def.Table.Status.Name).sql(" = ").param(constant(t.def.States[p.whole.target].Value))
	}
	signal(b.sql(")"), redirected+t.def.Table.Name)
}

// compoundRecord is the journal's INSERT with what only the compound knows.
func (t *table) compoundRecord(b *builder, p *plan) {
	b.sql("INSERT INTO ").table(t.def.Journal.Table).sql(" (").names(journalColumns).sql(") VALUES (")
	for i, f := range t.journalBinds() {
		if i > 0 {
			b.sql(", ")
		}
		switch {
		case i == logVersion:
			b.sql(varVersion)
		case i == logFrom && p.single < 0:
			t.nameOfStatus(b, varFrom)
		case i == logTo && p.whole.target < 0:
			t.nameOfStatus(b, varTo)
		default:
			b.param(f)
		}
	}
	b.sql("); ")
}

// nameOfStatus appends the name of the state a variable's value stands for.
func (t *table) nameOfStatus(b *builder, variable string) {
	b.sql("CASE ", variable)
	for i := range t.def.States {
		t.whenState(b, &t.def.States[i])
	}
	b.sql(" END")
}

// stepCompound is the unit of one transition where one round trip does it all.
func (t *table) stepCompound(x Execer, p *plan, v *values, wait bool) (engine.Change, error) {
	v.edge = edge{from: p.single, to: p.whole.target}
	if v.call.Version != engine.AnyVersion {
		v.edge.version = v.call.Version + 1
	}
	st := t.compoundText(v.call.Transition, p, v.call.Version != engine.AnyVersion, wait)
	var version, was, became any
	dest := []any{&version}
	if p.single < 0 {
		dest = append(dest, &was)
	}
	if p.whole.target < 0 {
		dest = append(dest, &became)
	}
	if _, err := x.Query(st.text, st.args(v), dest); err != nil {
		return engine.Change{}, t.meddledBy(err)
	}
	if version == nil {
		return engine.Change{}, errMiss
	}
	return t.changed(p, version, was, became)
}

// compound reports whether the compound is the way to run a call: it must be the
// whole unit, more than one statement, and one CAS for all sources. Its variables would
// hide columns of their names.
func (t *table) compound(tx engine.Tx, call *engine.Call, p *plan, plain bool) bool {
	return t.f.Compound && !t.likeVariables && tx == nil && call.Effect == nil && !plain && p.whole != nil && !p.whole.readsRow
}

// held reports whether a unit that was not to wait found its row held by somebody else.
func (t *table) held(err error) bool {
	c, ok := t.d.(Compounder)
	return ok && err != nil && t.f.Compound && c.Held(err)
}
