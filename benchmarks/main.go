// Command benchmarks measures the engine against what people do without it: the
// UPDATE by hand, the transaction by hand, and other libraries. Everything is
// interleaved in one process per database; what it prints are medians and ratios.
//
//	go run . -db sqlite
//	go run . -db postgres -dsn postgres://postgres@127.0.0.1:5432/test
//	go run . -db mysql    -dsn 'root@tcp(127.0.0.1:3306)/test'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// settings are what a run is told.
type settings struct {
	db, dsn string
	callers []int
	rows    int
	rounds  int
	round   time.Duration
	only    string
	out     string
	plot    string
	profile string
}

func main() {
	var s settings
	callers := flag.String("callers", "1,8,32,128", "numbers of concurrent callers")
	flag.StringVar(&s.db, "db", "sqlite", "sqlite, postgres or mysql")
	flag.StringVar(&s.dsn, "dsn", "", "where the database is; for sqlite a file (default: a fresh one)")
	flag.IntVar(&s.rows, "rows", 1000, "rows in each table")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each variant; the median counts")
	flag.DurationVar(&s.round, "round", 300*time.Millisecond, "how long one round of one variant takes")
	flag.StringVar(&s.only, "only", "", "only variants whose name contains this (the floors always run)")
	flag.StringVar(&s.out, "out", "", "append the table to this file")
	flag.StringVar(&s.plot, "plot", "", "write the plot to this SVG file")
	flag.StringVar(&s.profile, "cpuprofile", "", "write a CPU profile of the measuring to this file")
	flag.Parse()
	for _, text := range strings.Split(*callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "benchmarks: -callers %q: want numbers like 1,8,32\n", *callers)
			os.Exit(2)
		}
		s.callers = append(s.callers, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) (err error) {
	db, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.close(); err == nil {
			err = closeErr
		}
	}()
	works, err := prepare(ctx, db, s)
	if err != nil {
		return err
	}
	stop, err := profile(s.profile)
	if err != nil {
		return err
	}
	table, err := measure(ctx, works, s)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	text := table.markdown(db.name)
	fmt.Print(text)
	if s.out != "" {
		if err := appendTo(s.out, text); err != nil {
			return err
		}
	}
	if s.plot != "" {
		return os.WriteFile(s.plot, []byte(table.svg(db.name)), 0o644)
	}
	return nil
}

// profile begins a CPU profile, unless path is empty, and returns what ends it.
func profile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
