package persistence

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
)

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
	var checks []string
	err := s.look(ctx, "constraints", def.Table.Name, func() (err error) {
		checks, err = d.Checks(ctx, s.reader, def.Table.Name)
		return err
	})
	if err != nil {
		return err
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
