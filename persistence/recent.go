package persistence

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"

	"github.com/fsmgen/fsmgen/engine"
)

// recent is how many entries a row's journal may have to be read as a whole. Most rows
// have fewer; then nothing else has to be asked.
const recent = 16

// recentText reads the row and its journal in one statement, so that both are of one
// moment. It asks for one entry more, which tells that there are too many. They come
// in no order: to sort them the server would write a temporary table.
func (t *table) recentText() statement {
	b := &builder{d: t.d}
	b.sql("SELECT ")
	t.rowColumns(b, "r.")
	for _, c := range entryColumns {
		b.sql(", j.").name(c)
	}
	b.sql(" FROM (SELECT 1 AS one) AS o LEFT JOIN ").table(t.def.Table.Name).sql(" AS r ON ")
	t.whereRow(b)
	b.sql(" LEFT JOIN ").table(t.def.Journal.Table).sql(" AS j ON j.machine = ").compared(constant(t.def.Name))
	b.sql(" AND j.entity_id = ").compared(func(v *values) any { return v.entity })
	b.sql(" LIMIT ", strconv.Itoa(recent+1))
	return b.statement()
}

// inspectRecent gives the snapshot where the row's journal is short, and says whether
// it is.
func (t *table) inspectRecent(ctx context.Context, v *values) (s engine.Snapshot, whole bool, err error) {
	var entries []*engine.Entry
	err = t.each(ctx, nil, &t.recent, v, func(rows *sql.Rows) error {
		var e entryRow
		dest := t.rowDest()
		if err := rows.Scan(append(dest[:len(dest):len(dest)], e.dest()...)...); err != nil {
			return err
		}
		if !s.Found {
			if s.Row, s.Found, err = t.rowState(dest); err != nil {
				return err
			}
		}
		if !e.seq.Valid { // the outer join found none
			return nil
		}
		entry, err := e.entry()
		entries = append(entries, entry)
		return err
	})
	if err != nil || len(entries) > recent {
		return s, false, err
	}
	slices.SortFunc(entries, func(a, b *engine.Entry) int { return cmp.Compare(b.Version, a.Version) })
	found := foundEntries{}
	for _, e := range entries {
		t.sort(e, v.q, found)
	}
	found.fill(&s)
	return s, true, nil
}

// sort takes an entry for what entriesText would select it for; the last one, which
// comes first, stays.
func (t *table) sort(e *engine.Entry, q *engine.Inquiry, found foundEntries) {
	take := func(kind string, fits bool) {
		if fits && found[kind] == nil {
			found[kind] = e
		}
	}
	take(kindKey, q.Key != "" && e.Key == q.Key)
	take(kindCreation, e.Transition == "")
	take(kindEntered, e.From != e.To) // nothing is From for a creation
	if q.Transition < 0 {
		return
	}
	p := t.planOf(q.Transition)
	take(kindOwn, e.Transition == p.def.Name)
	take(kindNext, q.Version != engine.AnyVersion && e.Version == q.Version+1)
	for i, in := range p.sources {
		take(kindSource, in && slices.Contains(namesInJournal(&t.def.States[i]), e.To))
	}
}
