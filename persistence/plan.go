package persistence

import (
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// plan holds the statements of one transition.
type plan struct {
	def *definitions.Transition
	// sources are the states the transition leaves; single is the only one, or -1.
	sources []bool
	single  int
	// updates has the CAS per source state; states with the same moves share one.
	updates []*update
	// whole is the CAS over all sources, for dialects that do not read first.
	whole   *update
	inspect statement // row and journal together
	entries statement // the journal's part alone
}

// planOf returns the statements of a transition, built at its first call.
func (t *table) planOf(i int) *plan {
	if p := t.plans[i].Load(); p != nil {
		return p
	}
	p := t.buildPlan(i)
	t.plans[i].Store(p)
	return p
}

func (t *table) buildPlan(i int) *plan {
	def := &t.def.Transitions[i]
	n := len(t.def.States)
	p := &plan{def: def, sources: make([]bool, n), single: -1, updates: make([]*update, n)}
	count := 0
	for s := range t.def.States {
		if len(movesFrom(def, t.def.States[s].Name)) > 0 {
			p.sources[s], p.single = true, s
			count++
		}
	}
	if count != 1 {
		p.single = -1
	}
	groups := t.groupUpdates(def, p)
	switch {
	case groups == 1:
		p.whole = p.updates[slices.Index(p.sources, true)]
	case t.f.OneStatement:
		p.whole = t.newUpdate(def, p.sources, allMoves(def))
	}
	p.inspect = t.inspectText(def, p)
	if t.def.Journal.Enabled {
		b := &builder{d: t.d}
		t.entriesText(b, def, p)
		p.entries = b.statement()
	}
	return p
}

// groupUpdates builds one update for all states that have the same moves, and says
// how many there are.
func (t *table) groupUpdates(def *definitions.Transition, p *plan) int {
	groups := 0
	for s := range t.def.States {
		if !p.sources[s] || p.updates[s] != nil {
			continue
		}
		groups++
		moves := movesFrom(def, t.def.States[s].Name)
		states := make([]bool, len(t.def.States))
		for other := s; other < len(states); other++ {
			states[other] = p.sources[other] && slices.Equal(moves, movesFrom(def, t.def.States[other].Name))
		}
		u := t.newUpdate(def, states, moves)
		for other, in := range states {
			if in {
				p.updates[other] = u
			}
		}
	}
	return groups
}

// movesFrom lists the moves that leave a state, in the order they are tried. One
// without condition is the last: a "*" behind it is never reached.
func movesFrom(def *definitions.Transition, state string) []*definitions.Move {
	var out []*definitions.Move
	for i := range def.Moves {
		if !slices.Contains(def.Moves[i].From, state) {
			continue
		}
		out = append(out, &def.Moves[i])
		if def.Moves[i].When == nil {
			break
		}
	}
	return out
}

func allMoves(def *definitions.Transition) []*definitions.Move {
	out := make([]*definitions.Move, len(def.Moves))
	for i := range def.Moves {
		out[i] = &def.Moves[i]
	}
	return out
}

func (t *table) whereID(b *builder) {
	b.equal(t.d.Quote(t.def.Table.ID.Name), t.def.Table.ID.Type == expr.String, func(v *values) any { return v.id })
}

// statusIn appends the comparison of the status with every value the states may have.
func (t *table) statusIn(b *builder, states []bool) { b.sql(t.anyOf(states, b.placeholder)) }

// rowColumns appends the row's columns with a prefix: id, status, version, fields.
func (t *table) rowColumns(b *builder, prefix string) {
	for i, c := range columnsOf(t.def) {
		if i > 0 {
			b.sql(", ")
		}
		b.sql(prefix).name(c.Name)
	}
}

// The kinds of journal entries an inspection asks for.
const (
	kindKey      = "k" // with the call's key
	kindOwn      = "o" // the transition's last
	kindSource   = "s" // the last that led into one of its sources
	kindEntered  = "e" // the last that came from another state
	kindNext     = "n" // at the named version + 1
	kindCreation = "c" // the last creation
)

// entryColumns are the journal's columns that make an entry, in the order of scan.
var entryColumns = []string{"seq", "version", "transition", "from_state", "to_state", "args", "key", "fingerprint", "attempt", "actor", "meta", "at"}

// journalColumns are the columns a journal row is written with, in the order of
// journalBinds.
var journalColumns = []string{
	"machine", "entity_id", "version", "transition", "from_state", "to_state", "args",
	"key", "fingerprint", "attempt", "actor", "meta", "topic", "at",
}

// names appends a list of quoted identifiers.
func (b *builder) names(idents []string) *builder {
	for i, ident := range idents {
		if i > 0 {
			b.sql(", ")
		}
		b.name(ident)
	}
	return b
}

// inspectText reads the row and what its journal knows in one statement, so that
// both are of one moment. The row's columns repeat with every entry.
func (t *table) inspectText(def *definitions.Transition, p *plan) statement {
	b := &builder{d: t.d}
	b.sql("SELECT ")
	t.rowColumns(b, "r.")
	if !t.def.Journal.Enabled {
		b.sql(" FROM ").table(t.def.Table.Name).sql(" AS r WHERE ")
		t.whereRow(b)
		return b.statement()
	}
	b.sql(", j.* FROM (SELECT 1 AS one) AS o LEFT JOIN ").table(t.def.Table.Name).sql(" AS r ON ")
	t.whereRow(b)
	b.sql(" LEFT JOIN (")
	t.entriesText(b, def, p)
	b.sql(") AS j ON 1 = 1")
	return b.statement()
}

// whereRow names the row through the alias r.
func (t *table) whereRow(b *builder) {
	b.equal("r."+t.d.Quote(t.def.Table.ID.Name), t.def.Table.ID.Type == expr.String, func(v *values) any { return v.id })
}

// entriesText is the entries an inspection needs. Where a union that holds long text
// would go to disk, it is one of their numbers, to which they are joined.
func (t *table) entriesText(b *builder, def *definitions.Transition, p *plan) {
	if !t.f.SlimUnions {
		t.entryUnion(b, def, p)
		return
	}
	b.sql("SELECT n.kind")
	for _, c := range entryColumns {
		b.sql(", e.").name(c)
	}
	b.sql(" FROM (")
	t.entryUnion(b, def, p)
	b.sql(") AS n JOIN ").table(t.def.Journal.Table).sql(" AS e ON e.seq = n.last")
}

func (t *table) entryUnion(b *builder, def *definitions.Transition, p *plan) {
	t.entryText(b, kindKey, func() {
		b.sql(" AND ").name("key").sql(" = ").compared(func(v *values) any { return nullable(v.q.Key) })
	})
	b.sql(" UNION ALL ")
	t.lastEntry(b, kindCreation, t.siblings, func() { b.sql(" AND transition = ''") })
	b.sql(" UNION ALL ")
	t.entryText(b, kindEntered, func() { b.sql(" AND (from_state IS NULL OR from_state <> to_state)") })
	if def == nil {
		return
	}
	b.sql(" UNION ALL ")
	t.entryText(b, kindOwn, func() { b.sql(" AND transition = ").compared(constant(def.Name)) })
	b.sql(" UNION ALL ")
	t.entryText(b, kindNext, func() {
		b.sql(" AND version = ").compared(func(v *values) any {
			if v.q.Version == engine.AnyVersion {
				return nil
			}
			return v.q.Version + 1
		})
	})
	b.sql(" UNION ALL ")
	t.entryText(b, kindSource, func() { t.toStateIn(b, p.sources) })
}

// toStateIn restricts entries to those that led into one of the states, under any
// of the names the journal may hold for it.
func (t *table) toStateIn(b *builder, states []bool) {
	b.sql(" AND to_state IN (")
	first := true
	for i, in := range states {
		if !in {
			continue
		}
		for _, name := range namesInJournal(&t.def.States[i]) {
			if !first {
				b.sql(", ")
			}
			first = false
			b.compared(constant(name))
		}
	}
	b.sql(")")
}

// namesInJournal: the journal holds names, and a renamed state keeps its old one as alias.
func namesInJournal(s *definitions.State) []string {
	names := []string{s.Name}
	for _, a := range s.Aliases {
		if text, ok := a.(string); ok {
			names = append(names, text)
		}
	}
	return names
}

// entryText selects the last entry of the row that fits.
func (t *table) entryText(b *builder, kind string, and func()) {
	t.lastEntry(b, kind, func(b *builder) { b.name("machine").sql(" = ").compared(constant(t.def.Name)) }, and)
}

func (t *table) lastEntry(b *builder, kind string, machines func(*builder), and func()) {
	end := " AS e" + kind
	if t.f.SlimUnions {
		b.sql("SELECT '", kind, "' AS kind, (SELECT seq")
		end = " AS last"
	} else {
		b.sql("SELECT * FROM (SELECT '", kind, "' AS kind, ").names(entryColumns)
	}
	b.sql(" FROM ").table(t.def.Journal.Table)
	b.sql(" WHERE ")
	machines(b)
	b.sql(" AND entity_id = ").compared(func(v *values) any { return v.entity })
	and()
	b.sql(" ORDER BY version DESC LIMIT 1)", end)
}

// journalInsert records an edge.
func (t *table) journalInsert() statement {
	b := &builder{d: t.d}
	b.sql("INSERT INTO ").table(t.def.Journal.Table).sql(" (").names(journalColumns).sql(") VALUES (")
	for i, f := range t.journalBinds() {
		if i > 0 {
			b.sql(", ")
		}
		b.param(f)
	}
	b.sql(")")
	return b.statement()
}

// journalBinds are the values of a journal row, in the order of journalInsert.
func (t *table) journalBinds() []bind {
	record := func(v *values) *engine.Record {
		if v.call != nil {
			return &v.call.Record
		}
		return &v.create.Record
	}
	transitions, states := make([]any, len(t.def.Transitions)), make([]any, len(t.def.States))
	for i := range t.def.Transitions {
		transitions[i] = t.def.Transitions[i].Name
	}
	for i := range t.def.States {
		states[i] = t.def.States[i].Name
	}
	return []bind{
		constant(t.def.Name),
		func(v *values) any { return v.entity },
		func(v *values) any { return v.edge.version },
		func(v *values) any {
			if v.call == nil {
				return ""
			}
			return transitions[v.call.Transition]
		},
		func(v *values) any {
			if v.edge.from < 0 {
				return nil
			}
			return states[v.edge.from]
		},
		func(v *values) any { return states[v.edge.to] },
		func(v *values) any { return string(record(v).Args) },
		func(v *values) any { return record(v).Key },
		func(v *values) any { return record(v).Fingerprint },
		func(v *values) any { return record(v).Attempt },
		func(v *values) any { return nullable(record(v).Actor) },
		func(v *values) any { return nullableBytes(record(v).Meta) },
		func(v *values) any { return nullable(record(v).Topic) },
		func(v *values) any {
			if v.call == nil {
				return t.d.JournalTime(v.create.Now)
			}
			return t.d.JournalTime(v.call.Now)
		},
	}
}
