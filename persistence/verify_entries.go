package persistence

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// What the engine writes into the journal, in bytes, whatever the definition.
const (
	roomText        = 255       // ids, keys, actors
	roomFingerprint = 64        // SHA-256 in hex
	roomAttempt     = 32        // 128 bits in hex
	roomJSON        = 1<<16 - 1 // has no limit; a text of MariaDB's holds so much
)

// published is the column of the journal that the engine leaves to the user.
const published = "published_at"

// entrySpec is a column of the journal as a machine needs it.
type entrySpec struct {
	ColumnSpec
	room int // the longest text that is written there; 0: none is
}

// journalSpecs lists what a machine writes into its journal, and reads of it. found are
// the columns of the machine's own table, columns the journal's.
func (s *Store) journalSpecs(def *definitions.Machine, found, columns []Column) []entrySpec {
	var out []entrySpec
	add := func(use ColumnUse, name string, t expr.Type, nullable bool, room int) {
		out = append(out, entrySpec{ColumnSpec{Use: use, Name: name, Type: t, Scale: -1, Nullable: nullable}, room})
	}
	transitions, states, topics := namesOf(def)
	longest := func(name string, texts []string) int {
		c, _ := columnOf(columns, name)
		return longestIn(c, texts)
	}
	entity, _ := columnOf(columns, "entity_id")
	add(UseJournal, "seq", expr.Int, false, 0)
	add(UseJournal, "machine", expr.String, false, longest("machine", []string{def.Name}))
	add(UseJournal, "entity_id", expr.String, false, roomOfID(def, found[UseID], entity))
	add(UseJournal, "version", expr.Int, false, 0)
	add(UseJournal, "transition", expr.String, false, longest("transition", transitions))
	add(UseJournal, "from_state", expr.String, true, longest("from_state", states))
	add(UseJournal, "to_state", expr.String, false, longest("to_state", states))
	add(UseField, "args", expr.JSON, false, roomJSON)
	add(UseJournal, "key", expr.String, false, roomText)
	add(UseField, "fingerprint", expr.String, false, roomFingerprint)
	add(UseField, "attempt", expr.String, false, roomAttempt)
	add(UseField, "actor", expr.String, true, roomText)
	add(UseField, "meta", expr.JSON, true, roomJSON)
	add(UseField, "topic", expr.String, true, longest("topic", topics))
	add(UseField, published, expr.Time, true, 0)
	add(UseJournal, "at", expr.Time, false, 0)
	return out
}

// namesOf lists what the journal calls a machine's transitions, states and topics.
func namesOf(def *definitions.Machine) (transitions, states, topics []string) {
	topics = append(topics, def.Create.Emit)
	for i := range def.Transitions {
		transitions = append(transitions, def.Transitions[i].Name)
		topics = append(topics, def.Transitions[i].Emit)
	}
	for i := range def.States {
		states = append(states, def.States[i].Name)
	}
	return transitions, states, topics
}

// longestIn is the length of the longest text, as the column counts: text in characters,
// what has no collation in bytes.
func longestIn(c Column, texts []string) int {
	n := 0
	for _, text := range texts {
		if c.Collation == "" {
			n = max(n, len(text))
		} else {
			n = max(n, utf8.RuneCountInString(text))
		}
	}
	return n
}

// roomOfID is how long an id can be, of which the table's own column may hold less than
// the engine takes.
func roomOfID(def *definitions.Machine, id, entity Column) int {
	switch {
	case def.Table.ID.Type == expr.Int:
		return len(fmt.Sprint(math.MinInt64))
	case strings.EqualFold(id.Type, "uuid"):
		return len("00000000-0000-0000-0000-000000000000")
	case id.Length > 0 && (id.Collation == "") == (entity.Collation == ""):
		return min(id.Length, roomText)
	}
	return roomText
}

func columnOf(columns []Column, name string) (Column, bool) {
	for _, c := range columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return Column{}, false
}

// verifyEntry holds one column of the journal against what a machine needs. version is the
// column that the machine's own table has.
func (s *Store) verifyEntry(table string, want entrySpec, columns []Column, version Column) error {
	c, found := columnOf(columns, want.Name)
	if !found {
		return s.lacksColumn(table, want.Name)
	}
	why := ""
	switch {
	case want.Nullable && !c.Nullable && (want.Name != published || !c.Defaulted):
		why = "it is NOT NULL, and there are entries that have nothing there"
	case want.Name == published: // nobody writes it but the user
	case want.Name == "seq" && !c.Defaulted && !c.Triggered:
		why = "the database does not number the entries"
	case want.room > 0 && c.Length > 0 && c.Length < want.room:
		why = fmt.Sprintf("declared %s, and what is written there can be %d long", c.Type, want.room)
	case want.Name == "version" && want.Type == expr.Int && c.greatest() < version.greatest():
		why = fmt.Sprintf("declared %s, and the versions of the machine's table are %s", c.Type, version.Type)
	case want.room > 0 && want.room == c.Length && fixed(want.Name, c): // what is there is never padded
	default:
		if err := s.d.Verify(want.ColumnSpec, c); err != nil {
			return fmt.Errorf("journal table %s, column %s: %w", table, c.Name, err)
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("journal table %s, column %s: %s: %s", table, c.Name, why, s.redeclare(table, want.ColumnSpec, c))
}

// fixed: a type of one length, for what always has one.
func fixed(name string, c Column) bool {
	base, _, _ := strings.Cut(strings.ToLower(c.Type), "(")
	return (name == "fingerprint" || name == "attempt") && (base == "char" || base == "character" || base == "binary")
}

// unwritten finds columns of the user's own that no entry can do without, and that nobody
// fills: a trigger may.
func (s *Store) unwritten(table string, columns []Column) error {
	var faults []error
	for _, c := range columns {
		if c.Nullable || c.Defaulted || c.Triggered || slices.Contains(append([]string{"seq", published}, journalColumns...), strings.ToLower(c.Name)) {
			continue
		}
		faults = append(faults, fmt.Errorf("journal table %s, column %s: it is NOT NULL without a default, and the engine does not write it: %s", table, c.Name, s.allowNull(table, c)))
	}
	return errors.Join(faults...)
}

// redeclare is what mends a column of the journal.
func (s *Store) redeclare(table string, want ColumnSpec, c Column) string {
	line := s.journalLine(want.Name)
	switch s.d.Name() {
	case "postgres":
		alter := "run\nALTER TABLE " + QuoteTable(s.d, table) + " ALTER COLUMN " + s.d.Quote(want.Name)
		switch {
		case want.Nullable && !c.Nullable:
			return alter + " DROP NOT NULL"
		case want.Name == "seq":
			return alter + " SET NOT NULL, ALTER COLUMN " + s.d.Quote(want.Name) + " ADD GENERATED BY DEFAULT AS IDENTITY"
		}
		return alter + " TYPE " + s.d.ColumnType(want)
	case "mysql":
		key := "UNIQUE"
		if c.UniqueAlone {
			key = ""
		}
		return "run\nALTER TABLE " + QuoteTable(s.d, table) + " MODIFY " + strings.Replace(line, "PRIMARY KEY", key, 1)
	}
	return s.copied(table)
}

// allowNull is what mends a column that nobody fills.
func (s *Store) allowNull(table string, c Column) string {
	switch s.d.Name() {
	case "postgres":
		return "run\nALTER TABLE " + QuoteTable(s.d, table) + " ALTER COLUMN " + s.d.Quote(c.Name) + " DROP NOT NULL"
	case "mysql":
		collate := ""
		if c.Collation != "" {
			collate = " COLLATE " + c.Collation
		}
		return "run\nALTER TABLE " + QuoteTable(s.d, table) + " MODIFY " + s.d.Quote(c.Name) + " " + c.Type + collate + " NULL"
	}
	return s.copied(table)
}

// copied is what mends a journal that SQLite cannot alter.
func (s *Store) copied(table string) string {
	return "SQLite cannot alter it; rename the table, copy its entries into one made by\n" + s.d.JournalDDL(table)[0]
}

// journalLine is the DDL of one of the journal's columns.
func (s *Store) journalLine(name string) string {
	lines := s.d.JournalColumns()
	return lines[slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, s.d.Quote(name)+" ") })]
}
