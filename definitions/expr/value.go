package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// The times a row can hold: whole microseconds after the zero time of Go and up to
// the last one that every database takes. In microseconds since 1970.
const (
	minMicros = -62135596800_000_000 + 1
	maxMicros = 253402300799_999_999
)

// TimeRange returns the first and the last time a row can hold.
func TimeRange() (first, last time.Time) {
	return time.UnixMicro(minMicros).UTC(), time.UnixMicro(maxMicros).UTC()
}

// Coerce turns what a caller hands in into the one Go value the type has here:
// string, int64, float64, bool, [time.Time] in UTC and whole microseconds, []byte,
// [json.RawMessage], [decimal.Decimal] without trailing zeros, or nil.
//
// It takes every kind of integer that fits, [json.Number], named types such as
// `type Currency string`, pointers (nil, or what they point to), times in any zone,
// decimals as [decimal.Decimal], text or integer, implementations of
// [database/sql/driver.Valuer], and for JSON either its text ([]byte,
// [json.RawMessage]) or anything [json.Marshal] takes. A float never passes for an int
// or a decimal. The JSON document `null` is nil, and so is empty JSON text; a nil
// slice of bytes is empty, not nil.
//
// scale is the number of digits a decimal may have after the point, -1 for the most.
// The error says what is wrong and never repeats the value, which may be a secret.
// Bytes and JSON text are not copied.
func Coerce(t Type, scale int, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch t {
	case String:
		if s, ok := v.(string); ok {
			return coerceString(s, v)
		}
	case Int:
		switch n := v.(type) {
		case int64:
			return v, nil
		case int:
			return int64(n), nil
		}
	case Float:
		if f, ok := v.(float64); ok {
			return coerceFloat(f, v)
		}
	case Bool:
		if _, ok := v.(bool); ok {
			return v, nil
		}
	case Time:
		if tm, ok := v.(time.Time); ok {
			return coerceTime(tm, v)
		}
	case Bytes:
		if b, ok := v.([]byte); ok && b != nil {
			return v, nil
		}
	case JSON:
		switch raw := v.(type) {
		case json.RawMessage:
			return coerceJSON(raw, v)
		case []byte:
			return coerceJSON(raw, nil)
		}
	case Decimal:
		if d, ok := v.(decimal.Decimal); ok {
			return coerceDecimal(d, scale, v)
		}
	default:
		return nil, fmt.Errorf("no value has the type %s", t)
	}
	return coerceSlow(t, scale, v)
}

// checkString refuses what some database cannot hold or would hold differently.
func checkString(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("holds the character U+0000, which not every database can store")
	}
	return nil
}

func coerceString(s string, boxed any) (any, error) {
	if err := checkString(s); err != nil {
		return nil, err
	}
	if boxed == nil {
		return s, nil
	}
	return boxed, nil
}

// coerceFloat takes finite numbers; there is only one zero. boxed is f as it came,
// returned where it can be, so that a caller's value is not allocated again.
func coerceFloat(f float64, boxed any) (any, error) {
	switch {
	case math.IsNaN(f):
		return nil, errors.New("not a number (NaN)")
	case math.IsInf(f, 0):
		return nil, errors.New("not finite")
	case f == 0:
		return float64(0), nil
	case boxed == nil:
		return f, nil
	}
	return boxed, nil
}

// coerceTime truncates to microseconds: all databases keep those, none agree on more.
func coerceTime(tm time.Time, boxed any) (any, error) {
	u := tm.UTC().Truncate(time.Microsecond)
	if u.IsZero() {
		return nil, errors.New("the zero time")
	}
	if y := u.Year(); y < 1 || y > 9999 {
		return nil, errors.New("year outside 1 to 9999")
	}
	if boxed != nil && u == tm {
		return boxed, nil
	}
	return u, nil
}

func coerceDecimal(d decimal.Decimal, scale int, boxed any) (any, error) {
	units, err := decimalUnits(d)
	if err != nil {
		return nil, err
	}
	if scale >= 0 && scale < maxScale && units%pow10(maxScale-scale) != 0 {
		return nil, fmt.Errorf("more than %d digits after the point", scale)
	}
	if boxed != nil && isNormal(d, units) {
		return boxed, nil
	}
	return fromUnits(units), nil
}

// coerceNumber reads the text of a JSON number.
func coerceNumber(t Type, scale int, n string) (any, error) {
	switch t {
	case Int:
		i, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return nil, numberError(err, "an integer")
		}
		return i, nil
	case Float:
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return nil, numberError(err, "a number")
		}
		return coerceFloat(f, nil)
	default:
		return coerceDecimalText(n, scale)
	}
}

func coerceDecimalText(s string, scale int) (any, error) {
	d, err := parseDecimal(s)
	if err != nil {
		return nil, err
	}
	return coerceDecimal(d, scale, nil)
}

// numberError puts an error of strconv into words that do not repeat the text.
func numberError(err error, what string) error {
	if errors.Is(err, strconv.ErrRange) {
		return errors.New("out of range")
	}
	return errors.New("not " + what)
}
