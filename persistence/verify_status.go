package persistence

import (
	"context"
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

// statusList gives what follows "column IN (", or the form PostgreSQL makes of it.
func statusList(text, column string) (string, bool) {
	form := regexp.MustCompile("(?is)\\(+[`\"]?" + regexp.QuoteMeta(column) + "[`\"]?\\)?(?:::text)? *(?:in *\\(|= *any *\\(+array\\[)(.*)")
	m := form.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// plainValue is a value that every database writes in one way. How the others come back
// out of a constraint is the database's own affair, so they are not looked for.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_ -]+$`)

// lacking lists the states whose values are not in the list.
func (s *Store) lacking(def *definitions.Machine, list string) []string {
	var out []string
	for i := range def.States {
		found := true
		switch v := def.States[i].Value.(type) {
		case string:
			found = !plainValue.MatchString(v) || strings.Contains(list, "'"+v+"'")
		case int64:
			found = regexp.MustCompile(`(^|[^0-9-])'?` + strconv.FormatInt(v, 10) + `([^0-9]|$)`).MatchString(list)
		}
		if !found {
			out = append(out, stateLiteral(s.d, def.States[i].Value))
		}
	}
	return out
}
