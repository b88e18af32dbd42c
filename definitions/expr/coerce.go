package expr

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

// coerceSlow takes what the fast path of [Coerce] did not: pointers, named types,
// other widths.
func coerceSlow(t Type, scale int, v any) (any, error) {
	if n, ok := v.(json.Number); ok && (t == Int || t == Float || t == Decimal) {
		return coerceNumber(t, scale, n.String())
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return nil, nil
		}
		if t != JSON || coercesDirectly(rv.Elem()) {
			return Coerce(t, scale, rv.Elem().Interface())
		}
	}
	if t == JSON {
		return marshalJSON(v)
	}
	if out, ok, err := coerceKind(t, scale, rv); ok {
		return out, err
	}
	// After the kinds: a named string that also knows how to be stored is a string.
	if val, ok := v.(driver.Valuer); ok {
		inner, err := val.Value()
		if err != nil {
			return nil, fmt.Errorf("its Value method: %w", err)
		}
		if _, again := inner.(driver.Valuer); !again {
			return Coerce(t, scale, inner)
		}
	}
	return nil, fmt.Errorf("a %T, not %s", v, wanted(t))
}

// coercesDirectly reports whether JSON text lies behind a pointer.
func coercesDirectly(v reflect.Value) bool {
	return v.Type() == reflect.TypeFor[json.RawMessage]() || v.Type() == reflect.TypeFor[[]byte]()
}

// marshalJSON writes a Go value as JSON.
func marshalJSON(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return coerceJSON(raw, nil)
}

// coerceKind takes a value by its kind; ok is false where the kind does not fit.
func coerceKind(t Type, scale int, rv reflect.Value) (out any, ok bool, err error) {
	switch k := rv.Kind(); {
	case rv.CanInt() && rv.Type() != reflect.TypeFor[time.Duration]():
		return coerceInt(t, scale, rv.Int())
	case rv.CanUint() && k != reflect.Uintptr:
		return coerceUint(t, scale, rv.Uint())
	case rv.CanFloat() && t == Float:
		out, err = coerceFloat(rv.Float(), nil)
		return out, true, err
	case k == reflect.Bool && t == Bool:
		return rv.Bool(), true, nil
	case k == reflect.String && t == Decimal:
		out, err = coerceDecimalText(rv.String(), scale)
		return out, true, err
	case k == reflect.String && t == String && rv.Type() != reflect.TypeFor[json.Number]():
		out, err = coerceString(rv.String(), nil)
		return out, true, err
	case k == reflect.Slice && t == Bytes && rv.Type().Elem().Kind() == reflect.Uint8:
		if rv.IsNil() {
			return []byte{}, true, nil
		}
		return rv.Bytes(), true, nil
	case k == reflect.Struct && t == Time && rv.CanConvert(reflect.TypeFor[time.Time]()):
		if tm, isTime := rv.Convert(reflect.TypeFor[time.Time]()).Interface().(time.Time); isTime {
			out, err = coerceTime(tm, nil)
			return out, true, err
		}
	}
	return nil, false, nil
}

func coerceInt(t Type, scale int, i int64) (any, bool, error) {
	switch t {
	case Int:
		return i, true, nil
	case Float:
		if !exactFloat(i) {
			return nil, true, errors.New("an integer that a float cannot hold exactly")
		}
		return float64(i), true, nil
	case Decimal:
		out, err := coerceDecimal(decimal.NewFromInt(i), scale, nil)
		return out, true, err
	}
	return nil, false, nil
}

func coerceUint(t Type, scale int, u uint64) (any, bool, error) {
	if u <= math.MaxInt64 {
		return coerceInt(t, scale, int64(u))
	}
	switch t {
	case Int, Decimal:
		return nil, true, errors.New("out of range")
	case Float:
		out, err := coerceNumber(t, scale, strconv.FormatUint(u, 10))
		if f, ok := out.(float64); ok && (f >= 1<<64 || uint64(f) != u) {
			return nil, true, errors.New("an integer that a float cannot hold exactly")
		}
		return out, true, err
	}
	return nil, false, nil
}

// exactFloat reports whether a float64 holds i exactly.
func exactFloat(i int64) bool {
	f := float64(i)
	return f < 1<<63 && int64(f) == i
}

// wanted names a type in an error about a Go value.
func wanted(t Type) string {
	switch t {
	case Int:
		return "an integer"
	case Time:
		return "a time.Time"
	case Bytes:
		return "a []byte"
	case Decimal:
		return "a decimal.Decimal or its text"
	}
	return "a " + t.String()
}
