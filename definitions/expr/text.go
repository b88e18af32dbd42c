package expr

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// Numbers in definitions are plain: no leading zeros that could be octal, no
// underscores, no hexadecimal.
var (
	plainInt     = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)$`)
	plainDecimal = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	plainFloat   = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// ParseText reads plain text, such as a default in a definition, as a value of type t:
// a string is the text itself, a time is RFC 3339 with its zone, bytes are base64,
// JSON is its text. scale is that of [Coerce].
func ParseText(t Type, scale int, text string) (any, error) {
	switch t {
	case String:
		return coerceString(text, nil)
	case Int:
		if !plainInt.MatchString(text) {
			return nil, errors.New("not an integer")
		}
		return coerceNumber(t, scale, text)
	case Float:
		if !plainFloat.MatchString(text) {
			return nil, errors.New("not a number")
		}
		return coerceNumber(t, scale, text)
	case Decimal:
		if !plainDecimal.MatchString(text) {
			return nil, errors.New("not a decimal")
		}
		return coerceDecimalText(text, scale)
	case Bool:
		if text != "true" && text != "false" {
			return nil, errors.New("not true or false")
		}
		return text == "true", nil
	case Time:
		tm, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, errors.New("not a time such as 2026-01-31T09:30:00Z")
		}
		return coerceTime(tm, nil)
	case Bytes:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("not base64")
		}
		return b, nil
	case JSON:
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("not valid JSON")
		}
		return coerceJSON([]byte(text), nil)
	}
	return nil, fmt.Errorf("no value has the type %s", t)
}

// ParseDefault is [ParseText] for what a person wrote: a float that would be another number
// is refused, by the rule for literals.
func ParseDefault(t Type, scale int, text string) (any, error) {
	v, err := ParseText(t, scale, text)
	if err != nil || t != Float {
		return v, err
	}
	if _, ok := floatNumber(number{text: strings.TrimPrefix(text, "+"), frac: strings.ContainsAny(text, ".eE")}); !ok {
		return nil, errors.New("no float is exactly that")
	}
	return v, nil
}

// maxShown is how much of a long value a message shows.
const maxShown = 64

// FormatValue writes a value for a message: 9900, "wx-1", nil. Long values are cut.
func FormatValue(t Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return strconv.Quote(cut(v))
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999999Z")
	case time.Duration:
		return v.String()
	case json.RawMessage:
		return cut(string(v))
	case []byte:
		if t == JSON {
			return cut(string(v))
		}
		if len(v) > maxShown/2 {
			return fmt.Sprintf("0x%s… (%d bytes)", hex.EncodeToString(v[:maxShown/2]), len(v))
		}
		return "0x" + hex.EncodeToString(v)
	case int64, float64, bool, decimal.Decimal:
		return string(AppendText(nil, t, v))
	}
	return fmt.Sprintf("%v", v)
}

// cut shortens s to what a message shows, at a rune's boundary.
func cut(s string) string {
	if len(s) <= maxShown {
		return s
	}
	end := maxShown
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
