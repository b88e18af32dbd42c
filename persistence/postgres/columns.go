package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/persistence"
)

// catalogue reads a table's columns. Domains are followed to what they are made of.
// An index makes a column unique by itself if it holds for every row, at once, and
// compares as the column does. A trigger counts that runs before a row is inserted or
// updated.
const catalogue = `WITH RECURSIVE c AS (
  SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attcollation,
    a.atthasdef OR a.attidentity <> '' OR EXISTS (SELECT 1 FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid AND t.typdefault IS NOT NULL) AS defaulted
  FROM pg_catalog.pg_attribute AS a
  WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
), base AS (
  SELECT attnum, atttypid AS typ, atttypmod AS mod, attnotnull AS filled FROM c
  UNION ALL
  SELECT b.attnum, t.typbasetype, CASE WHEN b.mod >= 0 THEN b.mod ELSE t.typtypmod END, b.filled OR t.typnotnull
  FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.typ AND t.typtype = 'd'
)
SELECT c.attname AS name,
  pg_catalog.format_type(b.typ, b.mod) AS declared,
  pg_catalog.format_type(b.typ, NULL) AS base,
  b.mod AS modifier,
  NOT b.filled AS nullable,
  c.defaulted,
  COALESCE(l.collname, '') AS collation,
  COALESCE(NOT l.collisdeterministic, false) AS folds,
  EXISTS (SELECT 1 FROM pg_catalog.pg_index AS i
    WHERE i.indrelid = c.attrelid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
      AND i.indnkeyatts = 1 AND i.indkey[0] = c.attnum AND i.indcollation[0] = c.attcollation) AS uniquealone,
  EXISTS (SELECT 1 FROM pg_catalog.pg_trigger AS g
    WHERE g.tgrelid = c.attrelid AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype & 3 = 3 AND g.tgtype & 20 <> 0) AS triggered
FROM c
JOIN base AS b ON b.attnum = c.attnum
JOIN pg_catalog.pg_type AS t ON t.oid = b.typ AND t.typtype <> 'd'
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = c.attcollation
ORDER BY c.attnum`

// heirs asks for tables that inherit from one, and are no partitions of it.
const heirs = `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.inhparent
  WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind = 'r')`

// fact is one column as the catalogue tells it.
type fact struct {
	Name, Declared, Base, Collation string
	Modifier                        int
	Nullable, Folds, UniqueAlone    bool
	Triggered, Defaulted            bool
}

// Columns reads the table's columns from the catalogue; none if there is no table.
func (d dialect) Columns(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Column, error) {
	var children bool
	if err := db.GetContext(ctx, &children, heirs, persistence.QuoteTable(d, table)); err != nil {
		return nil, err
	}
	if children {
		return nil, errors.New("other tables inherit from it (INHERITS): no id is unique over all of them, and a statement changes them all")
	}
	var facts []fact
	if err := db.SelectContext(ctx, &facts, catalogue, persistence.QuoteTable(d, table)); err != nil {
		return nil, err
	}
	out := make([]persistence.Column, len(facts))
	for i, f := range facts {
		c := persistence.Column{Name: f.Name, Type: f.Declared, Nullable: f.Nullable, Collation: f.Collation, Folds: f.Folds, UniqueAlone: f.UniqueAlone, Triggered: f.Triggered, Defaulted: f.Defaulted}
		c.Length, c.Precision, c.Scale = widths(f.Base, f.Modifier)
		out[i] = c
	}
	return out, nil
}

// widths reads a type modifier: characters of text, digits of decimals, bits of
// integers, digits of a second's fraction.
func widths(base string, modifier int) (length, precision, scale int) {
	const header = 4 // a modifier counts the header of a value too
	switch base {
	case "character varying", "character":
		return max(modifier-header, 0), 0, 0
	case "numeric":
		if modifier < header {
			return 0, 0, 0
		}
		m := modifier - header
		return 0, m >> 16 & 0xffff, (m&0x7ff ^ 0x400) - 0x400 // eleven bits with sign
	case "smallint":
		return 0, 16, 0
	case "integer":
		return 0, 32, 0
	case "bigint":
		return 0, 64, 0
	case "timestamp with time zone", "timestamp without time zone":
		if modifier < 0 {
			return 0, 0, 6
		}
		return 0, 0, modifier
	}
	return 0, 0, 0
}

// baseName is a declared type without its width.
func baseName(declared string) string {
	before, rest, ok := strings.Cut(declared, "(")
	if !ok {
		return declared
	}
	_, after, _ := strings.Cut(rest, ")")
	return before + after
}

// holds lists the types that keep a value of a definition's type as it is.
var holds = map[expr.Type][]string{
	expr.String:  {"text", "character varying"},
	expr.Int:     {"bigint", "integer", "smallint"},
	expr.Float:   {"double precision"},
	expr.Bool:    {"boolean"},
	expr.Time:    {"timestamp with time zone"},
	expr.Bytes:   {"bytea"},
	expr.JSON:    {"json", "jsonb"},
	expr.Decimal: {"numeric"},
}

// Verify refuses columns that would change a value, raise for one, or take two ids
// or states for one.
func (d dialect) Verify(want persistence.ColumnSpec, c persistence.Column) error {
	if c.Name != want.Name {
		return fmt.Errorf("the definition writes it %q; names compare by case here: write it as the table has it", want.Name)
	}
	base := baseName(c.Type)
	switch {
	case want.Use == persistence.UseID && want.Type == expr.String && base == "uuid":
		return nil
	case want.Use == persistence.UseJournal && base == "timestamp without time zone" && c.Scale == 6: // of UTC, as it is written
		return nil
	case !slices.Contains(holds[want.Type], base):
		return fmt.Errorf("declared %s, %s: %s", c.Type, why(base, want), d.alter(want, base))
	case want.Type == expr.Time && c.Scale < 6:
		return fmt.Errorf("declared %s, which rounds to %d digits of a second: %s", c.Type, c.Scale, d.alter(want, base))
	case c.Length > 0 && longest(want.Values) > c.Length:
		return fmt.Errorf("declared %s, and the definition has a state of %d characters: %s", c.Type, longest(want.Values), d.alter(want, base))
	case want.Type == expr.Int && !fit(want.Values, c.Precision):
		return fmt.Errorf("declared %s, which does not hold every state of the definition: %s", c.Type, d.alter(want, base))
	case want.Type == expr.String && c.Folds:
		return fmt.Errorf("its collation %q is nondeterministic and takes different texts for one: ALTER COLUMN %s TYPE %s COLLATE \"C\"", c.Collation, d.Quote(c.Name), c.Type)
	}
	return nil
}

// longest is the length of the longest text a column must hold, in characters.
func longest(values []any) int {
	n := 0
	for _, v := range values {
		if text, ok := v.(string); ok {
			n = max(n, utf8.RuneCountInString(text))
		}
	}
	return n
}

// fit reports whether integers have at most so many bits, the sign among them.
func fit(values []any, bits int) bool {
	for _, v := range values {
		if n, ok := v.(int64); ok && bits > 0 && (n>>(bits-1) != 0 && n>>(bits-1) != -1) {
			return false
		}
	}
	return true
}

// why says what is wrong with a type.
func why(base string, want persistence.ColumnSpec) string {
	switch base {
	case "character", `"char"`:
		return "which pads with spaces and ignores them when it compares"
	case "citext", "public.citext":
		return "which takes texts that differ in case for one"
	case "timestamp without time zone":
		return "which forgets the time zone"
	case "real":
		return "which keeps less than a float has"
	case "money", "double precision", "integer", "bigint", "smallint":
		return fmt.Sprintf("which does not keep every %s", want.Type)
	}
	return fmt.Sprintf("which is not made for %s values", want.Type)
}

// alter is the DDL that mends a type, after ALTER TABLE and the table's name.
func (d dialect) alter(want persistence.ColumnSpec, base string) string {
	name, to := d.Quote(want.Name), d.ColumnType(want)
	text := "ALTER COLUMN " + name + " TYPE " + to
	switch {
	case base == "timestamp without time zone":
		text += " USING " + name + " AT TIME ZONE 'UTC'"
	case base != "character" && base != "real":
		text += " USING " + name + "::" + to
	}
	return text
}
