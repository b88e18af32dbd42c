package expr

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

// timeLayout has a fixed width, so that texts order like the times they stand for.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// AppendCanonical appends the one form a value has in fingerprints and derived keys:
// the length of its text in bytes, a colon, the text as [AppendText] writes it. nil
// is a single "-". Values appended one after the other can be told apart again, so a
// list of them needs no separator.
//
// v is what [Coerce] returned for t.
func AppendCanonical(dst []byte, t Type, v any) []byte {
	if v == nil {
		return append(dst, '-')
	}
	if s, ok := v.(string); ok {
		dst = strconv.AppendInt(dst, int64(len(s)), 10)
		return append(append(dst, ':'), s...)
	}
	var buf [64]byte
	text := AppendText(buf[:0], t, v)
	dst = strconv.AppendInt(dst, int64(len(text)), 10)
	return append(append(dst, ':'), text...)
}

// AppendText appends the canonical text of a value: the string itself; the digits of
// an int; the shortest form of a float that reads back the same; true or false; a
// time in UTC with six digits after the second; bytes as they are; a decimal
// without trailing zeros; JSON without spaces, keys sorted, of two equal keys the last,
// numbers as written. nil has no text.
//
// v is what [Coerce] returned for t.
func AppendText(dst []byte, t Type, v any) []byte {
	switch v := v.(type) {
	case nil:
		return dst
	case string:
		return append(dst, v...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	case bool:
		return strconv.AppendBool(dst, v)
	case time.Time:
		return v.UTC().AppendFormat(dst, timeLayout)
	case json.RawMessage:
		return appendCanonicalJSON(dst, v)
	case []byte:
		if t == JSON {
			return appendCanonicalJSON(dst, v)
		}
		return append(dst, v...)
	case decimal.Decimal:
		return appendDecimal(dst, v)
	}
	panic("expr: not a canonical value of type " + t.String())
}

// appendDecimal appends d without trailing zeros.
func appendDecimal(dst []byte, d decimal.Decimal) []byte {
	if units, err := decimalUnits(d); err == nil {
		return appendUnits(dst, units)
	}
	return append(dst, d.String()...) // String drops trailing zeros
}

// appendUnits appends a number of millionths as a decimal.
func appendUnits(dst []byte, u int64) []byte {
	if u < 0 {
		dst, u = append(dst, '-'), -u
	}
	dst = strconv.AppendInt(dst, u/1_000_000, 10)
	frac := u % 1_000_000
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.')
	for p := int64(100_000); frac > 0; p /= 10 {
		dst = append(dst, byte('0'+frac/p))
		frac %= p
	}
	return dst
}

// Equal reports whether two canonical values of type t are the same value: decimals
// by value, times by instant, JSON by its canonical text. nil equals only nil.
func Equal(t Type, a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	switch x := a.(type) {
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case decimal.Decimal:
		y, ok := b.(decimal.Decimal)
		return ok && x.Cmp(y) == 0
	case string, int64, float64, bool:
		return a == b
	}
	x, okx := rawBytes(a)
	y, oky := rawBytes(b)
	if !okx || !oky {
		return false
	}
	if bytes.Equal(x, y) {
		return true
	}
	return t == JSON && bytes.Equal(appendCanonicalJSON(nil, x), appendCanonicalJSON(nil, y))
}

func rawBytes(v any) ([]byte, bool) {
	switch b := v.(type) {
	case json.RawMessage:
		return b, true
	case []byte:
		return b, true
	}
	return nil, false
}
