package expr

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Bounds of JSON values: what every database still takes. MariaDB's json_valid ends
// at 32 levels, PostgreSQL's jsonb reads numbers as numeric.
const (
	maxJSONDepth  = 30
	maxJSONNumber = 1000
)

// coerceJSON checks JSON text. boxed is raw as it came, if that may be returned.
func coerceJSON(raw []byte, boxed any) (any, error) {
	text := bytes.TrimSpace(raw)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	if !json.Valid(text) {
		return nil, errors.New("not valid JSON")
	}
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	if boxed != nil && len(text) == len(raw) {
		return boxed, nil
	}
	return json.RawMessage(text), nil
}

// checkJSON finds what is valid JSON but not storable on every database. The text is
// known to be valid.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("JSON that is not valid UTF-8")
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[' || c == '{':
			if depth++; depth > maxJSONDepth {
				return fmt.Errorf("JSON nested deeper than %d levels", maxJSONDepth)
			}
		case c == ']' || c == '}':
			depth--
		case c == '"':
			end, err := checkJSONString(text, i)
			if err != nil {
				return err
			}
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && bytes.IndexByte([]byte("+-.eE0123456789"), text[end]) >= 0 {
				end++
			}
			if !storableNumber(text[i:end]) {
				return errors.New("JSON with a number of too many digits")
			}
			i = end - 1
		}
	}
	return nil
}

// storableNumber bounds the digits a number has once it is written out.
func storableNumber(num []byte) bool {
	exp := 0
	if e := bytes.IndexAny(num, "eE"); e >= 0 {
		n, err := strconv.Atoi(string(num[e+1:]))
		if err != nil {
			return false
		}
		exp = max(n, -n)
	}
	return exp >= 0 && exp <= maxJSONNumber && len(num) <= maxJSONNumber
}

// checkJSONString checks the string that begins at text[start] and returns the index
// of its closing quote.
func checkJSONString(text []byte, start int) (int, error) {
	for i := start + 1; ; i++ {
		switch text[i] {
		case '"':
			return i, nil
		case '\\':
			i++
			if text[i] != 'u' {
				continue
			}
			u, low := hex4(text[i+1:]), rune(0)
			if i+6 < len(text) && text[i+5] == '\\' && text[i+6] == 'u' {
				low = hex4(text[i+7:])
			}
			i += 4
			switch {
			case u == 0:
				return 0, errors.New("JSON with the character U+0000, which not every database can store")
			case u >= 0xD800 && u < 0xDC00 && low >= 0xDC00 && low < 0xE000:
				i += 6
			case u >= 0xD800 && u < 0xE000:
				return 0, errors.New("JSON with half a surrogate pair")
			}
		}
	}
}

// hex4 reads four hexadecimal digits, which valid JSON has behind each \u.
func hex4(b []byte) rune {
	u, err := strconv.ParseUint(string(b[:min(4, len(b))]), 16, 32)
	if err != nil {
		return -1
	}
	return rune(u)
}

// appendCanonicalJSON appends raw without spaces, with sorted keys. Text that is not
// JSON, which no coerced value is, is appended as it stands.
func appendCanonicalJSON(dst, raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return append(dst, raw...)
	}
	return appendJSONTree(dst, v)
}

func appendJSONTree(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		return append(dst, v...)
	case string:
		return appendJSONString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONTree(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, k), ':')
			dst = appendJSONTree(dst, v[k])
		}
		return append(dst, '}')
	}
	return dst
}

// appendJSONString appends s in quotes; only what must be escaped is.
func appendJSONString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// AppendJSON appends a canonical value as JSON, so that [FromJSON] gives exactly the
// same value again: an int keeps all its digits, a decimal is a string, bytes are
// base64, a time is RFC 3339 in UTC with six digits after the second.
func AppendJSON(dst []byte, t Type, v any) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	switch t {
	case String:
		s, _ := v.(string)
		return appendJSONString(dst, s)
	case Time, Decimal:
		return append(AppendText(append(dst, '"'), t, v), '"')
	case Bytes:
		raw, _ := rawBytes(v)
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), raw), '"')
	case JSON:
		raw, _ := rawBytes(v)
		return append(dst, raw...)
	}
	return AppendText(dst, t, v)
}

// FromJSON reads what [AppendJSON] wrote, also after a database changed spaces, the
// order of keys or the form of numbers.
func FromJSON(t Type, raw []byte) (any, error) {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return nil, nil
	}
	switch t {
	case Int, Float:
		return coerceNumber(t, -1, string(raw))
	case Bool:
		var b bool
		err := json.Unmarshal(raw, &b)
		return b, err
	case JSON:
		return coerceJSON(raw, nil)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("a %s is a JSON string: %w", t, err)
	}
	switch t {
	case String:
		return coerceString(s, nil)
	case Time:
		tm, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return nil, errors.New("not a time as RFC 3339 writes it")
		}
		return coerceTime(tm, nil)
	case Bytes:
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil, errors.New("not base64")
		}
		return b, nil
	case Decimal:
		return coerceDecimalText(s, -1)
	}
	return nil, fmt.Errorf("no value has the type %s", t)
}
