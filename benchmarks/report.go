package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// markdown is the table: rate, ratio F to the UPDATE by hand, ratio T to the
// transaction by hand, and the 99th percentile, per number of callers.
func (t *table) markdown(db string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n%s, %d CPUs, %s/%s, %s\n\n", db, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	b.WriteString("| work |")
	for _, n := range t.callers {
		fmt.Fprintf(&b, " %d: rate/s | F | T | p99 |", n)
	}
	b.WriteString("\n|---|")
	b.WriteString(strings.Repeat("---:|", 4*len(t.callers)))
	b.WriteString("\n")
	for _, w := range t.works {
		fmt.Fprintf(&b, "| %s |", w.name)
		for _, n := range t.callers {
			r := t.rates[w.name][n]
			fmt.Fprintf(&b, " %.0f | %s | %s | %v |", r.perSecond, ratio(r, t.rates[w.floor][n]), ratio(r, t.rates[handName(w)][n]), r.p99.Round(10*time.Microsecond))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func handName(w work) string {
	if w.hot {
		return handHot
	}
	return handTx
}

func ratio(a, b rate) string {
	if b.perSecond == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a.perSecond/b.perSecond)
}

// plotted are the works the plot shows.
var plotted = []struct{ name, colour string }{
	{floorUpdate, "#888888"}, {handTx, "#cc6677"}, {"engine, bare, version named", "#4477aa"}, {"engine, journaled", "#228833"},
}

// svg plots the rate over the number of callers.
func (t *table) svg(db string) string {
	const width, height, left, bottom, top = 640.0, 360.0, 70.0, 40.0, 40.0
	highest := 0.0
	for _, p := range plotted {
		for _, n := range t.callers {
			highest = max(highest, t.rates[p.name][n].perSecond)
		}
	}
	x := func(i int) float64 { return left + (width-left-170)*float64(i)/float64(max(1, len(t.callers)-1)) }
	y := func(v float64) float64 { return height - bottom - (height-bottom-top)*v/max(1, highest) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/><text x="%.0f" y="20" font-size="14">%s: calls per second over concurrent callers</text>`+"\n", width, height, left, db)
	for i, n := range t.callers {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", x(i), height-bottom+18, n)
	}
	for k := range 5 {
		v := highest * float64(k) / 4
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%.1f" y="%.1f" text-anchor="end">%.0f</text>`+"\n", left, x(len(t.callers)-1), y(v), y(v), left-6, y(v)+4, v)
	}
	for k, p := range plotted {
		var points strings.Builder
		for i, n := range t.callers {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(i), y(t.rates[p.name][n].perSecond))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n",
			strings.TrimSpace(points.String()), p.colour, width-160, top+18*float64(k)+12, p.colour, p.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
