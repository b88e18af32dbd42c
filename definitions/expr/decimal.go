package expr

import (
	"errors"
	"strings"

	"github.com/shopspring/decimal"
)

// A decimal is evaluated as a whole number of millionths: every legal one fits an
// int64, and so does a sum of two.
const (
	maxScale = 6
	maxUnits = 1_000_000_000_000_000_000 - 1
)

var (
	errDecimalRange  = errors.New("out of the range of a decimal (below 10^12)")
	errDecimalDigits = errors.New("more than 6 digits after the point")
)

// pow10 returns 10^n for n from 0 to 18.
func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// decimalUnits returns d in millionths, exactly. It looks at the exponent before it
// computes: 1e400000000 is a legal decimal.Decimal.
func decimalUnits(d decimal.Decimal) (int64, error) {
	if d.IsZero() {
		return 0, nil
	}
	digits, exp := d.NumDigits(), int(d.Exponent())
	if digits+exp > 12 {
		return 0, errDecimalRange
	}
	if digits > 18 {
		return longUnits(d, digits, exp)
	}
	c, shift := d.CoefficientInt64(), exp+maxScale
	if shift >= 0 {
		return c * pow10(shift), nil // digits+exp <= 12, so at most 18 digits
	}
	if shift < -18 || c%pow10(-shift) != 0 {
		return 0, errDecimalDigits
	}
	return c / pow10(-shift), nil
}

// Units returns a decimal as a whole number of millionths, exactly. The error says why
// it is none of the type.
func Units(d decimal.Decimal) (int64, error) { return decimalUnits(d) }

// longUnits is decimalUnits for a coefficient of more than 18 digits, which is legal
// only if the last ones are zeros.
func longUnits(d decimal.Decimal, digits, exp int) (int64, error) {
	if digits > 1000 || exp < -1000 {
		return 0, errDecimalDigits
	}
	cut := d.Truncate(maxScale)
	if !cut.Equal(d) {
		return 0, errDecimalDigits
	}
	return cut.Shift(maxScale).IntPart(), nil
}

// fromUnits returns a number of millionths as a decimal without trailing zeros.
func fromUnits(u int64) decimal.Decimal {
	exp := int32(-maxScale)
	for exp < 0 && u%10 == 0 {
		u /= 10
		exp++
	}
	return decimal.New(u, exp)
}

// isNormal reports whether d is already what fromUnits would make of it.
func isNormal(d decimal.Decimal, units int64) bool {
	exp := d.Exponent()
	if exp == 0 {
		return true
	}
	return exp < 0 && exp >= -maxScale && (units/pow10(maxScale+int(exp)))%10 != 0
}

// parseDecimal reads the text of a decimal. The length is bounded first, since
// reading takes time that grows with its square.
func parseDecimal(s string) (decimal.Decimal, error) {
	if len(s) > 100 {
		return decimal.Decimal{}, errors.New("too long for a decimal")
	}
	if s == "" || strings.Trim(s, "+-.eE0123456789") != "" {
		return decimal.Decimal{}, errors.New("not a decimal")
	}
	d, err := decimal.NewFromString(s)
	if err != nil {
		return decimal.Decimal{}, errors.New("not a decimal")
	}
	return d, nil
}
