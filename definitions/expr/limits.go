package expr

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Limits is what a column takes of its type. The zero value is no limit beyond that of
// the type itself. Nothing is ever rounded, cut or clamped to fit: a value that does
// not is rejected.
type Limits struct {
	Min, Max int64 // ints; both 0: any int64
	Length   int   // strings, in characters; 0: any length
	// Precision is how many digits a decimal column holds in all, 0: any number. Scale is
	// how many of them stand after the point; it counts only with a Precision.
	Precision, Scale int
}

// ScaleOnly returns the limits of a decimal that may have scale digits after the
// point, -1 for the most.
func ScaleOnly(scale int) Limits {
	if scale < 0 || scale >= maxScale {
		return Limits{}
	}
	return Limits{Precision: 12 + scale, Scale: scale}
}

// Narrower returns the limits of a value that must keep both.
func (l Limits) Narrower(o Limits) Limits {
	if l.Min == 0 && l.Max == 0 {
		l.Min, l.Max = o.Min, o.Max
	} else if o.Min != 0 || o.Max != 0 {
		l.Min, l.Max = max(l.Min, o.Min), min(l.Max, o.Max)
	}
	if l.Length == 0 || o.Length > 0 && o.Length < l.Length {
		l.Length = o.Length
	}
	switch {
	case l.Precision == 0:
		l.Precision, l.Scale = o.Precision, o.Scale
	case o.Precision > 0:
		whole := min(l.Precision-l.Scale, o.Precision-o.Scale)
		l.Scale = min(l.Scale, o.Scale)
		l.Precision = whole + l.Scale
	}
	return l
}

// DecimalLimits reports whether a decimal column is narrower than the type, and if so
// how many digits it has before and after the point.
func (l Limits) DecimalLimits() (whole, scale int, narrow bool) {
	if l.Precision == 0 {
		return 12, maxScale, false
	}
	whole, scale = min(l.Precision-l.Scale, 12), min(l.Scale, maxScale)
	return whole, scale, whole < 12 || scale < maxScale
}

// Check reports why a canonical value does not fit, or nil.
func (l Limits) Check(t Type, v any) error {
	if v == nil {
		return nil
	}
	switch t {
	case Int:
		if i, ok := v.(int64); ok && (l.Min != 0 || l.Max != 0) && (i < l.Min || i > l.Max) {
			return fmt.Errorf("outside %d to %d", l.Min, l.Max)
		}
	case String:
		if s, ok := v.(string); ok && l.Length > 0 && utf8.RuneCountInString(s) > l.Length {
			return fmt.Errorf("longer than %d characters", l.Length)
		}
	case Decimal:
		return l.checkDecimal(v)
	}
	return nil
}

func (l Limits) checkDecimal(v any) error {
	whole, scale, narrow := l.DecimalLimits()
	if !narrow {
		return nil
	}
	x, err := unbox(Decimal, v)
	switch {
	case err != nil:
		return err
	case x.i%pow10(maxScale-scale) != 0:
		return fmt.Errorf("more than %d digits after the point", scale)
	case x.i >= pow10(whole+maxScale) || x.i <= -pow10(whole+maxScale):
		return errors.New("too large for its column")
	}
	return nil
}

// Assign computes the expression as the new value of a column: its canonical value,
// or a [*Rejection], also where the column does not take it.
func (e *Expr) Assign(in Input, l Limits) (any, error) {
	v, err := e.Eval(in)
	if err != nil {
		return nil, err
	}
	if err := l.Check(e.Root.Type, v); err != nil {
		rej := rejectIf(e.Root, err)
		rej.finish(&in)
		return nil, rej
	}
	return v, nil
}
