package definitions

import "unicode"

// Names hold letters and digits alone, so of Unicode's normal form C they can
// break only this much, which spares a dependency on its whole tables: marks that
// belong on the letter before them, letters that exist for round trips only and
// whose normal form is another letter, and Korean syllables in pieces.

// isNFC reports whether a name of letters and digits is in normal form C.
func isNFC(name string) bool {
	last := rune(0)
	for _, r := range name {
		if unicode.Is(notNormal, r) || isDiacritic(r) || isSyllablePart(last, r) {
			return false
		}
		last = r
	}
	return true
}

// isDiacritic reports marks of scripts whose letters exist with their marks on.
func isDiacritic(r rune) bool {
	return r >= 0x0300 && r <= 0x036f || r == 0x3099 || r == 0x309a
}

// isSyllablePart reports whether r completes the Korean syllable that last begins.
func isSyllablePart(last, r rune) bool {
	leads := last >= 0x1100 && last <= 0x1112 && r >= 0x1161 && r <= 0x1175
	open := last >= 0xac00 && last <= 0xd7a3 && (last-0xac00)%28 == 0
	return leads || open && r >= 0x11a8 && r <= 0x11c2
}

// notNormal are the letters whose normal form C is not themselves. Unicode
// promises that none is ever taken off, and adds hardly any.
var notNormal = &unicode.RangeTable{ //nolint:gochecknoglobals // a table, never written
	R16: []unicode.Range16{
		{Lo: 0x0374, Hi: 0x0374, Stride: 1},
		{Lo: 0x0958, Hi: 0x095f, Stride: 1},
		{Lo: 0x09dc, Hi: 0x09dd, Stride: 1},
		{Lo: 0x09df, Hi: 0x09df, Stride: 1},
		{Lo: 0x0a33, Hi: 0x0a36, Stride: 3},
		{Lo: 0x0a59, Hi: 0x0a5b, Stride: 1},
		{Lo: 0x0a5e, Hi: 0x0a5e, Stride: 1},
		{Lo: 0x0b5c, Hi: 0x0b5d, Stride: 1},
		{Lo: 0x0f43, Hi: 0x0f4d, Stride: 10},
		{Lo: 0x0f52, Hi: 0x0f5c, Stride: 5},
		{Lo: 0x0f69, Hi: 0x0f69, Stride: 1},
		{Lo: 0x1f71, Hi: 0x1f7d, Stride: 2},
		{Lo: 0x1fbb, Hi: 0x1fbe, Stride: 3},
		{Lo: 0x1fc9, Hi: 0x1fcb, Stride: 2},
		{Lo: 0x1fd3, Hi: 0x1feb, Stride: 8},
		{Lo: 0x1ff9, Hi: 0x1ffb, Stride: 2},
		{Lo: 0x2126, Hi: 0x2126, Stride: 1},
		{Lo: 0x212a, Hi: 0x212b, Stride: 1},
		{Lo: 0xf900, Hi: 0xfa0d, Stride: 1},
		{Lo: 0xfa10, Hi: 0xfa12, Stride: 2},
		{Lo: 0xfa15, Hi: 0xfa1e, Stride: 1},
		{Lo: 0xfa20, Hi: 0xfa22, Stride: 2},
		{Lo: 0xfa25, Hi: 0xfa26, Stride: 1},
		{Lo: 0xfa2a, Hi: 0xfa6d, Stride: 1},
		{Lo: 0xfa70, Hi: 0xfad9, Stride: 1},
		{Lo: 0xfb1d, Hi: 0xfb1f, Stride: 2},
		{Lo: 0xfb2a, Hi: 0xfb36, Stride: 1},
		{Lo: 0xfb38, Hi: 0xfb3c, Stride: 1},
		{Lo: 0xfb3e, Hi: 0xfb40, Stride: 2},
		{Lo: 0xfb41, Hi: 0xfb43, Stride: 2},
		{Lo: 0xfb44, Hi: 0xfb46, Stride: 2},
		{Lo: 0xfb47, Hi: 0xfb4e, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x2f800, Hi: 0x2fa1d, Stride: 1}},
}
