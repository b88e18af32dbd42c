package persistence

import (
	"context"
	"database/sql"
	"slices"
	"strconv"

	"github.com/fsmgen/fsmgen/engine"
)

// recent is how many of a row's last entries a diagnosis reads in one go. Most rows
// have fewer in all; then nothing else has to be asked.
const recent = 16

// recentText reads the row and the end of its journal in one statement, so that both
// are of one moment. It asks for one entry more, which tells that there are more.
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
	b.sql(" ORDER BY j.version DESC LIMIT ", strconv.Itoa(recent+1))
	return b.statement()
}

// inspectRecent gives the snapshot where the row's whole journal is recent, and says
// whether it is.
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
	take(kindNext, q.Version != 0 && e.Version == q.Version+1)
	for i, in := range p.sources {
		take(kindSource, in && slices.Contains(namesInJournal(&t.def.States[i]), e.To))
	}
}
