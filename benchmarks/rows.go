package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// lamp is a machine that can go on for ever: every row is switched to and fro. touch
// leaves the state, for the hot row; spend leads to where nothing leads out again.
const lamp = `
machine: %[1]s
table: {name: %[1]s}
initial: dark
states: {dark: , lit: , spent: {final: true}}
transitions:
  light: {from: dark, to: lit}
  douse: {from: lit, to: dark}
  touch: {from: dark, to: dark}
  spend: {from: [dark, lit], to: spent}
journal: %[2]s
`

// row is what a caller knows of a row it has to itself.
type row struct {
	id      string
	version int64
	lit     bool
}

// edge gives the transition a row is to take, and its states.
func (r *row) edge() (transition, from, to string) {
	if r.lit {
		return "douse", "lit", "dark"
	}
	return "light", "dark", "lit"
}

func (r *row) moved() { r.version, r.lit = r.version+1, !r.lit }

// rows are the rows of one work's table.
func rows(n int) []row {
	out := make([]row, n)
	for i := range out {
		out[i] = row{id: fmt.Sprintf("row-%d", i), version: 1}
	}
	return out
}

// newTable makes a work's own table, filled, and its journal. What is written costs more
// the larger the journal is, so that each work begins with an empty one.
func (db *database) newTable(ctx context.Context, name string, n int, journal bool) (*definitions.Machine, error) {
	log := "false"
	if journal {
		log = "{table: " + name + "_log}"
	}
	for _, table := range []string{name, name + "_log"} { // of an earlier run
		if err := db.exec(ctx, "DROP TABLE IF EXISTS `"+table+"`"); err != nil {
			return nil, err
		}
	}
	def, err := definitions.Parse("lamp.yaml", fmt.Appendf(nil, lamp, name, log))
	if err != nil {
		return nil, err
	}
	if err := db.store.Migrate(ctx, def); err != nil {
		return nil, err
	}
	for first := 0; first < n; first += 500 {
		text := "INSERT INTO `" + name + "` (`id`, `status`, `version`) VALUES "
		var args []any
		for i := first; i < min(n, first+500); i++ {
			if i > first {
				text += ", "
			}
			text += "(?, 'dark', 1)"
			args = append(args, fmt.Sprintf("row-%d", i))
		}
		if err := db.exec(ctx, text, args...); err != nil {
			return nil, err
		}
	}
	return def, nil
}

// machine makes a table and the engine's machine over it, which has the table's name.
func (db *database) machine(ctx context.Context, name string, n int, journal bool) (*engine.Machine, error) {
	def, err := db.newTable(ctx, name, n, journal)
	if err != nil {
		return nil, err
	}
	eng, err := engine.New(db.store)
	if err != nil {
		return nil, err
	}
	return eng.Machine(ctx, def)
}

// sequence numbers keys across works, rounds and runs.
var sequence atomic.Int64 //nolint:gochecknoglobals // one per process is the point

func newKey() string { return fmt.Sprintf("k-%d-%d", started, sequence.Add(1)) }

var started = time.Now().UnixNano() //nolint:gochecknoglobals // keeps the keys of two runs apart
