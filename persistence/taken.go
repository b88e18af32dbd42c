package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// taken completes the fault of a version that the journal holds already: a row put
// back by hand stands before its own history. The hint names both versions and the
// UPDATE that mends it.
func (t *table) taken(ctx context.Context, tx engine.Tx, id string, err error) error {
	var f *engine.Fault
	if !errors.As(err, &f) || f.Class != engine.ClassVersionTaken {
		return err
	}
	hint := "let the row go on where its journal ends: " + t.mendText(id)
	if tx == nil { // a caller's transaction may be unusable now
		if row, last, ok := t.versions(ctx, id); ok {
			hint = fmt.Sprintf("the row is at version %d, its journal is at %d; %s", row, last, hint)
		}
	}
	return &engine.Fault{Class: f.Class, Err: f.Err, Hint: hint}
}

// versions reads where a row and its journal stand.
func (t *table) versions(ctx context.Context, id string) (row, last int64, ok bool) {
	state, found, err := t.Get(ctx, nil, id)
	if err != nil || !found {
		return 0, 0, false
	}
	err = t.each(ctx, nil, &t.lastVersion, &values{entity: id}, func(rows *sql.Rows) error { return rows.Scan(&last) })
	return state.Version, last, err == nil
}

// mendText is for people to read and run; the engine never does. The version is that of
// all machines over the table.
func (t *table) mendText(id string) string {
	version, entity := t.d.Quote(t.def.Table.Version), t.d.Literal(id)
	key := entity
	if t.def.Table.ID.Type == expr.Int {
		key = id
	}
	var machines []string
	for _, name := range t.s.machines.Machines(t.def.Table.Name) {
		machines = append(machines, t.d.Literal(name))
	}
	return strings.Join([]string{
		"UPDATE", QuoteTable(t.d, t.def.Table.Name), "SET", version, "= (SELECT MAX(version) FROM", QuoteTable(t.d, t.def.Journal.Table),
		"WHERE machine IN (" + strings.Join(machines, ", ") + ") AND entity_id =", entity + ")", "WHERE", t.d.Quote(t.def.Table.ID.Name), "=", key,
	}, " ")
}
