package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fsmgen/fsmgen/persistence"
)

// SpellID gives the one spelling of an id. A text that the column's type would refuse
// with an error, inside the caller's transaction even with the end of it, is told
// apart here.
func (dialect) SpellID(c persistence.Column, id string) (string, error) {
	switch baseName(c.Type) {
	case "uuid":
		return spellUUID(id)
	case "integer", "smallint":
		if _, err := strconv.ParseInt(id, 10, c.Precision); err != nil {
			return "", fmt.Errorf("the id %q does not fit into the id column, which is %s", id, c.Type)
		}
	case "character varying":
		if c.Length > 0 && utf8.RuneCountInString(id) > c.Length {
			return "", fmt.Errorf("the id has %d characters, the id column is %s", utf8.RuneCountInString(id), c.Type)
		}
	}
	return id, nil
}

// spellUUID takes what PostgreSQL takes: upper or lower case, in braces or not, with
// or without a hyphen after every four digits.
func spellUUID(id string) (string, error) {
	fail := func() (string, error) { return "", fmt.Errorf("the id %q is no uuid, and the id column is one", id) }
	text := id
	if strings.HasPrefix(text, "{") {
		if !strings.HasSuffix(text, "}") {
			return fail()
		}
		text = text[1 : len(text)-1]
	}
	const digits = 32
	out := make([]byte, 0, digits+4)
	n := 0
	for i := 0; i < len(text); i++ {
		c := text[i] | 0x20 // lower case; digits and the hyphen have the bit already
		switch {
		case text[i] == '-' && n > 0 && n%4 == 0 && n < digits && text[i-1] != '-':
			continue
		case n == digits || !(c >= '0' && c <= '9' && text[i] == c || c >= 'a' && c <= 'f'):
			return fail()
		}
		if n == 8 || n == 12 || n == 16 || n == 20 {
			out = append(out, '-')
		}
		out = append(out, c)
		n++
	}
	if n != digits {
		return fail()
	}
	return string(out), nil
}
