package persistence

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
)

// IndexReader is a Dialect that can read the unique indexes of a table: each as its
// columns.
type IndexReader interface {
	UniqueIndexes(ctx context.Context, db *sqlx.DB, table string) ([][]string, error)
}

// verifyKeys finds a journal without the indexes on which everything rests: that no
// version is reached twice, and no request applied twice.
func (s *Store) verifyKeys(ctx context.Context, table string) error {
	d, ok := s.d.(IndexReader)
	if !ok {
		return nil
	}
	have, err := d.UniqueIndexes(ctx, s.reader, table)
	if err != nil {
		return fmt.Errorf("reading the indexes of %s: %w", table, err)
	}
	for _, third := range []string{"version", "key"} {
		want := []string{"entity_id", "machine", third}
		slices.Sort(want)
		if !slices.ContainsFunc(have, func(columns []string) bool { return slices.Equal(folded(columns), want) }) {
			return fmt.Errorf("journal table %s has no unique index over (machine, entity_id, %s), without which a request could be applied twice: call store.Migrate, or run\n%s",
				table, third, strings.Join(s.d.JournalDDL(table), ";\n"))
		}
	}
	return nil
}

// folded sorts names in lower case.
func folded(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToLower(name)
	}
	slices.Sort(out)
	return out
}

// GroupColumns makes lists of columns out of rows of index and column, in order.
func GroupColumns(rows []IndexColumn) [][]string {
	var out [][]string
	for i, r := range rows {
		if i == 0 || rows[i-1].Index != r.Index {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r.Column)
	}
	return out
}

// IndexColumn is one column of an index.
type IndexColumn struct {
	Index  string `db:"index_name"`
	Column string `db:"column_name"`
}

// CheckReader is a Dialect that can read the CHECK constraints of a table, as text the
// database gives them.
type CheckReader interface {
	Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error)
}

// verifyStates finds a CHECK that lists the values of the status column, as Migrate
// writes it, and lacks a state: one that was added to the definition since. Migrate
// never alters a table, so the first row to reach that state would be refused.
func (s *Store) verifyStates(ctx context.Context, def *definitions.Machine) error {
	d, ok := s.d.(CheckReader)
	if !ok {
		return nil
	}
	checks, err := d.Checks(ctx, s.reader, def.Table.Name)
	if err != nil {
		return fmt.Errorf("reading the constraints of %s: %w", def.Table.Name, err)
	}
	for _, text := range checks {
		list, ok := statusList(text, def.Table.Status.Name)
		if !ok {
			continue
		}
		if lacks := s.lacking(def, list); len(lacks) > 0 {
			return fmt.Errorf("table %s, column %s: its CHECK constraint does not allow %s: the table is older than the definition; replace that constraint by %s",
				def.Table.Name, def.Table.Status.Name, strings.Join(lacks, ", "), statusCheck(s.d, def))
		}
	}
	return nil
}

// statusList gives the list of a constraint that is nothing but "column IN (list)", or the
// form that PostgreSQL makes of it. In any other, as in "column IN (list) OR paid_at IS NOT
// NULL", the list does not say which states there may be.
func statusList(text, column string) (string, bool) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "CHECK"))
	inner, _, ok := group(text) // what follows it is no part of the constraint
	for rest := ""; ok && rest == ""; {
		text = strings.TrimSpace(inner)
		inner, rest, ok = group(text)
	}
	form := regexp.MustCompile("(?is)^\\(?[`\"]?" + regexp.QuoteMeta(column) + "[`\"]?\\)?(?:::text)? *(in|= *any) *(\\(.*)$")
	m := form.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	list, rest, ok := group(m[2])
	isArray := strings.HasPrefix(strings.ToLower(strings.TrimLeft(list, "(")), "array[")
	return list, ok && rest == "" && isArray == !strings.EqualFold(m[1], "in")
}

// group splits text that begins with a parenthesis into what that holds and what follows
// it. Parentheses within quotes do not count.
func group(text string) (inner, rest string, ok bool) {
	if !strings.HasPrefix(text, "(") {
		return "", "", false
	}
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote == '\'' && strings.HasPrefix(text[i+1:], "'"): // as MariaDB writes a quote within quotes
			i++
		case quote != 0:
			if c == quote {
				quote = 0 // a doubled one opens again at once
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return text[1:i], strings.TrimSpace(text[i+1:]), true
			}
		}
	}
	return "", "", false
}

// plainValue is a value that every database writes in one way, but that MariaDB has what
// is beyond ASCII in hex, see its Literal. How the others come back out of a constraint is
// the database's own affair, so they are not looked for.
var plainValue = regexp.MustCompile(`^[\pL\pN_ -]+$`)

// lacking lists the states whose values are not in the list.
func (s *Store) lacking(def *definitions.Machine, list string) []string {
	var out []string
	inHex := strings.ToLower(list)
	for i := range def.States {
		switch v := def.States[i].Value.(type) {
		case string:
			digits := hex.EncodeToString([]byte(v))
			if plainValue.MatchString(v) && !strings.Contains(list, "'"+v+"'") &&
				!strings.Contains(inHex, "x'"+digits+"'") && !strings.Contains(inHex, "0x"+digits) {
				out = append(out, "'"+v+"'")
			}
		case int64:
			number := strconv.FormatInt(v, 10)
			if !regexp.MustCompile(`(^|[^0-9-])'?` + number + `([^0-9]|$)`).MatchString(list) {
				out = append(out, number)
			}
		}
	}
	return out
}
