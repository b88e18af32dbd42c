package persistence

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/engine"
)

// createOneText inserts the row and its journal entry in one statement. An id that
// exists, a declared unique key that is taken, or a key that was seen, inserts nothing.
func (t *table) createOneText(keyed bool) statement {
	return t.createText(keyed, len(t.def.Unique) == 0 || t.deferrable)
}

// createText: strict lets only the id stand in the way. Without it every unique index
// does, since a statement can name one of them, or all. All it cannot where one of them is
// deferrable: then the rows of the declared keys are looked for.
func (t *table) createText(keyed, strict bool) statement {
	b := &builder{d: t.d}
	status := func(v *values) any { return t.def.States[v.create.State].Value }
	b.sql("WITH ", partCAS, " AS (INSERT INTO ").table(t.def.Table.Name).sql(" (")
	t.rowColumns(b, "")
	b.sql(") SELECT ").param(func(v *values) any { return v.id }).sql(", ")
	b.param(status).sql(", ")
	t.firstVersion(b)
	for i := range t.def.Fields {
		b.sql(", ").param(func(v *values) any { return bindValue(v.create.Values[i]) })
	}
	where := " WHERE "
	if keyed {
		t.keyUnseen(b.sql(where), func(v *values) any { return v.create.Key })
		where = " AND "
	}
	if t.deferrable && len(t.def.Unique) > 0 {
		b.sql(where, "NOT EXISTS (")
		t.existing(b)
		b.sql(")")
	}
	b.sql(" ON CONFLICT ")
	if strict {
		b.sql("(").name(t.def.Table.ID.Name).sql(") ")
	}
	b.sql("DO NOTHING RETURNING ").name(t.def.Table.Version).sql(" AS v")
	if t.triggered {
		b.sql(", ").name(t.def.Table.Status.Name).sql(" AS became")
	}
	b.sql(")")
	if t.def.Journal.Enabled {
		t.logRow(b, func(i int) bool {
			if i == logVersion {
				b.sql("c.v")
			}
			return i == logVersion
		})
		t.logged(b.sql(" FROM ", partCAS, " AS c"))
	}
	t.told(b.sql(" SELECT "), status)
	b.sql(" FROM ", partCAS, " AS c")
	return b.statement()
}

// firstVersion appends the version a new row starts with: the one after the
// journal's last for this id, so that a row created again goes on from there. Where none
// follows the statement raises, unless the row is there and nothing is inserted anyway.
func (t *table) firstVersion(b *builder) {
	if !t.def.Journal.Enabled {
		b.sql("1")
		return
	}
	greatest := strconv.FormatInt(t.maxVersion, 10)
	b.sql("(SELECT CASE WHEN MAX(version) >= ", greatest, " AND NOT EXISTS (")
	t.existing(b)
	b.sql(") THEN CAST(", t.d.Literal(spent), " || MAX(version) AS bigint) ELSE LEAST(COALESCE(MAX(version), 0), ", greatest, " - 1) + 1 END FROM ")
	b.table(t.def.Journal.Table).sql(" WHERE ")
	t.siblings(b)
	b.sql(" AND entity_id = ").param(func(v *values) any { return v.entity }).sql(")")
}

// spent begins what the server says where firstVersion finds none.
const spent = "fsmgen: the journal of this id ends at version "

// spentBy is the fault of a creation for which no version is left: the journal of an
// earlier row of this id has used them up.
func (t *table) spentBy(err error) error {
	mend := "use another id"
	if t.maxVersion < math.MaxInt64 {
		mend += ", or give the column " + t.def.Table.Version + " a wider type"
	}
	return &engine.Fault{
		Class: engine.ClassFatal, Err: err,
		Hint: "an earlier row of this id was at the last version there is, none follows; nothing was created: " + mend,
	}
}

// createOne is the unit of one creation where one statement does it all.
func (t *table) createOne(x Execer, v *values) (engine.Change, error) {
	v.edge = edge{from: -1, to: v.create.State}
	keyed := t.def.Journal.Enabled && !v.create.KeyOwn
	var version any
	st := &t.createOnes[index(keyed)]
	found, err := x.Query(st.text, st.args(v), []any{&version})
	if err != nil && t.deferrable && t.ranIntoKey(x, v, err) {
		return engine.Change{}, errMiss
	}
	if err == nil && !found && len(t.def.Unique) > 0 {
		found, err = t.createStrictly(x, v, keyed, &version)
	}
	if err != nil && strings.Contains(err.Error(), spent) {
		return engine.Change{}, t.spentBy(err)
	}
	if err != nil || !found {
		return engine.Change{}, errors.Join(t.meddledBy(err), missIf(err == nil))
	}
	n, ok := version.(int64)
	if !ok {
		return engine.Change{}, errVersionType
	}
	return engine.Change{OK: true, From: -1, To: v.create.State, Version: n}, nil
}

// ranIntoKey reports whether a refused INSERT lost a race for a declared key, which could
// not be looked for in the same statement. Inside a caller's transaction nothing can be
// looked for any more: there the constraint's error stands.
func (t *table) ranIntoKey(x Execer, v *values, err error) bool {
	if len(t.def.Unique) == 0 || t.s.classify(err) != engine.ClassConstraint {
		return false
	}
	var one any
	taken, lookErr := x.Query(t.exists.text, t.exists.args(v), []any{&one})
	return lookErr == nil && taken
}

// createStrictly settles what stood in the way of a creation. Where it was neither the
// id nor a declared key, it is a unique index that the definition does not know: then
// the same again, strictly, lets the database say which.
func (t *table) createStrictly(x Execer, v *values, keyed bool, version *any) (bool, error) {
	var one any
	if taken, err := x.Query(t.exists.text, t.exists.args(v), []any{&one}); err != nil || taken {
		return false, err
	}
	if keyed {
		if seen, err := x.Query(t.keySeen.text, t.keySeen.args(v), []any{&one}); err != nil || seen {
			return false, err
		}
	}
	st := t.createText(keyed, true)
	return x.Query(st.text, st.args(v), []any{version})
}
