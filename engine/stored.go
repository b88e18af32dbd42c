package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// equalStored reports whether a value that a row holds is the one that was given. The
// column may have written the numbers of a JSON value in another way (jsonb: 1e2 as 100).
func equalStored(t expr.Type, stored, given any) bool {
	if expr.Equal(t, stored, given) {
		return true
	}
	if t != expr.JSON {
		return false
	}
	a, oka := decoded(stored)
	b, okb := decoded(given)
	return oka && okb && equalJSON(a, b)
}

func decoded(v any) (out any, ok bool) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return out, d.Decode(&out) == nil
}

func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equalJSON)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalJSON)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && plainNumber(a) == plainNumber(b)
	}
	return a == b // nil, bool or string; of two types they are different
}

// plainNumber gives the same text for the same number: its digits without zeros around
// them, and the power of ten.
func plainNumber(n json.Number) string {
	text, sign := strings.CutPrefix(strings.ToLower(string(n)), "-")
	text, power, _ := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(text, ".")
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil { // no database holds it
			return string(n)
		}
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	short += "e" + strconv.Itoa(exponent-len(fraction)+len(digits)-len(short))
	if sign {
		return "-" + short
	}
	return short
}
