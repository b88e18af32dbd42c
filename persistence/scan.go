package persistence

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

func mustInt(id string) any {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil { // the engine has checked the id
		return id
	}
	return n
}

// rowDest gives scan destinations for the row's columns.
func (t *table) rowDest() []any {
	dest := make([]any, 3+len(t.def.Fields))
	for i := range dest {
		dest[i] = new(any)
	}
	return dest
}

// rowState turns scanned columns into a row. found is false where the id is NULL,
// which is how an outer join says that there is no row.
func (t *table) rowState(dest []any) (row engine.RowState, found bool, err error) {
	raw := func(i int) any { return *dest[i].(*any) } //nolint:errcheck // rowDest made them
	if raw(0) == nil {
		return row, false, nil
	}
	if row.ID, err = t.textOfID(raw(0)); err != nil {
		return row, false, err
	}
	row.Raw = raw(1)
	row.State = t.stateOf(row.Raw)
	if raw(2) == nil {
		return row, false, fmt.Errorf("row %q has NULL in version column %s: UPDATE %s SET %s = 1 WHERE %s IS NULL", row.ID, t.def.Table.Version,
			QuoteTable(t.d, t.def.Table.Name), t.d.Quote(t.def.Table.Version), t.d.Quote(t.def.Table.Version))
	}
	version, err := decode(expr.Int, raw(2))
	if err != nil {
		return row, false, fmt.Errorf("row %q, column %s: %w", row.ID, t.def.Table.Version, err)
	}
	row.Version, _ = version.(int64) // decode gives nothing else for an int
	row.Values = make([]any, len(t.def.Fields))
	for i := range t.def.Fields {
		if row.Values[i], err = decode(t.def.Fields[i].Type, raw(3+i)); err != nil {
			return row, false, fmt.Errorf("row %q, column %s: %w", row.ID, t.def.Fields[i].Column, err)
		}
	}
	return row, true, nil
}

// stateOf gives the index of the state the status column holds, or -1.
func (t *table) stateOf(raw any) int {
	if t.def.Table.Status.Type == expr.Int {
		if n, err := decode(expr.Int, raw); err == nil && n != nil {
			raw = n
		}
	}
	if i, ok := t.rules.StateOf(raw); ok {
		return i
	}
	return -1
}

func (t *table) textOfID(raw any) (string, error) {
	switch v := raw.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return "", fmt.Errorf("the id column holds a %T", raw)
}

// decode turns what a driver read into the canonical value of a type.
func decode(t expr.Type, raw any) (any, error) {
	if raw == nil {
		return nil, nil
	}
	text, isText := textOf(raw)
	switch t {
	case expr.Bytes:
		if b, ok := raw.([]byte); ok {
			return append([]byte{}, b...), nil
		}
		return []byte(text), nil
	case expr.String:
		if isText {
			return text, nil
		}
	case expr.JSON:
		if isText {
			return json.RawMessage(text), nil
		}
	case expr.Bool:
		return decodeBool(raw)
	case expr.Time:
		if at, ok := raw.(time.Time); ok {
			if at.IsZero() { // what mattn's driver makes of a text it cannot read
				return nil, errors.New("it holds no time that can be read")
			}
			return at.UTC().Truncate(time.Microsecond), nil
		}
		return parseTime(text)
	case expr.Int, expr.Float, expr.Decimal:
		if isText {
			return expr.ParseText(t, -1, text)
		}
		if n, ok := raw.(int64); ok && t == expr.Float {
			return float64(n), nil
		}
	}
	return expr.Coerce(t, -1, raw)
}

func textOf(raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

func decodeBool(raw any) (any, error) {
	switch v := raw.(type) {
	case bool:
		return v, nil
	case int64:
		return v != 0, nil
	}
	text, _ := textOf(raw)
	b, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a bool", text)
	}
	return b, nil
}

// timeLayouts are the forms in which databases and drivers leave times as text.
var timeLayouts = []string{
	"2006-01-02T15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999-07",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04",
	"2006-01-02",
}

// parseTime reads a time kept as text; one without a zone is UTC.
func parseTime(text string) (any, error) {
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Microsecond), nil
		}
	}
	return nil, fmt.Errorf("%q is not a time", text)
}

// entryRow is one scanned journal row; every column is NULL where an outer join
// found none.
type entryRow struct {
	seq, version                sql.NullInt64
	transition, from, to, key   sql.NullString
	fingerprint, attempt, actor sql.NullString
	args, meta                  sql.NullString
	at                          any
}

func (e *entryRow) dest() []any {
	return []any{&e.seq, &e.version, &e.transition, &e.from, &e.to, &e.args, &e.key, &e.fingerprint, &e.attempt, &e.actor, &e.meta, &e.at}
}

func (e *entryRow) entry() (*engine.Entry, error) {
	at, err := decode(expr.Time, e.at)
	if err != nil {
		return nil, fmt.Errorf("journal row %d: %w", e.seq.Int64, err)
	}
	out := &engine.Entry{
		Seq: e.seq.Int64, Version: e.version.Int64, Transition: e.transition.String, From: e.from.String, To: e.to.String,
		Key: e.key.String, Actor: e.actor.String, Fingerprint: e.fingerprint.String, Attempt: e.attempt.String,
	}
	if e.args.Valid {
		out.Args = json.RawMessage(e.args.String)
	}
	if e.meta.Valid {
		out.Meta = json.RawMessage(e.meta.String)
	}
	out.At, _ = at.(time.Time)
	return out, nil
}
