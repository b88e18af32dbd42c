package workflowtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// meddler is a trigger of the user's own, in the words of each database; "" where that
// has none of the kind.
type meddler struct {
	sqlite, postgres, mariadb []string
	says                      string
	creates                   bool // it meddles with a creation
	truly                     bool // it may be applied, if the answer is what the row holds
}

func (m *meddler) of(database string) []string {
	switch database {
	case "sqlite":
		return m.sqlite
	case "postgres":
		return m.postgres
	}
	return m.mariadb
}

func plpgsql(when, body string) []string {
	return []string{
		"CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + body + " RETURN NEW; END $$",
		"CREATE TRIGGER meddle BEFORE " + when + " FOR EACH ROW EXECUTE FUNCTION meddle()",
	}
}

var meddlers = map[string]*meddler{
	"another status": {
		sqlite:   []string{"CREATE TRIGGER meddle AFTER UPDATE OF status ON ords WHEN NEW.status = 'b' BEGIN UPDATE ords SET status = 'c' WHERE id = NEW.id; END"},
		postgres: plpgsql("UPDATE ON ords", "NEW.status := 'c';"),
		mariadb:  []string{"CREATE TRIGGER meddle BEFORE UPDATE ON ords FOR EACH ROW SET NEW.status = 'c'"},
		says:     "ords",
	},
	"another version": {
		sqlite:   []string{"CREATE TRIGGER meddle AFTER UPDATE OF status ON ords BEGIN UPDATE ords SET version = version + 10 WHERE id = NEW.id; END"},
		postgres: plpgsql("UPDATE ON ords", "NEW.version := NEW.version + 10;"),
		mariadb:  []string{"CREATE TRIGGER meddle BEFORE UPDATE ON ords FOR EACH ROW SET NEW.version = NEW.version + 10"},
		says:     "ords", truly: true,
	},
	"created elsewhere": {
		sqlite:   []string{"CREATE TRIGGER meddle AFTER INSERT ON ords BEGIN UPDATE ords SET status = 'b' WHERE id = NEW.id; END"},
		postgres: plpgsql("INSERT ON ords", "NEW.status := 'b';"),
		mariadb:  []string{"CREATE TRIGGER meddle BEFORE INSERT ON ords FOR EACH ROW SET NEW.status = 'b'"},
		says:     "ords", creates: true,
	},
	"not created": {
		sqlite: []string{"CREATE TRIGGER meddle BEFORE INSERT ON ords BEGIN SELECT RAISE(IGNORE); END"},
		says:   "ords", creates: true,
	},
	"not recorded": {
		sqlite:   []string{"CREATE TRIGGER meddle BEFORE INSERT ON fsm_journal BEGIN SELECT RAISE(IGNORE); END"},
		postgres: plpgsql("INSERT ON fsm_journal", "RETURN NULL;"),
		says:     "fsm_journal",
	},
	"creation not recorded": {
		sqlite:   []string{"CREATE TRIGGER meddle BEFORE INSERT ON fsm_journal BEGIN SELECT RAISE(IGNORE); END"},
		postgres: plpgsql("INSERT ON fsm_journal", "RETURN NULL;"),
		says:     "fsm_journal", creates: true,
	},
	"harmless": {
		sqlite:   []string{"CREATE TRIGGER meddle AFTER UPDATE OF status ON ords BEGIN UPDATE ords SET balance = balance - 1 WHERE id = NEW.id; END"},
		postgres: plpgsql("UPDATE ON ords", "NEW.balance := NEW.balance - 1;"),
		mariadb:  []string{"CREATE TRIGGER meddle BEFORE UPDATE ON ords FOR EACH ROW SET NEW.balance = NEW.balance - 1"},
		truly:    true,
	},
}

// TestTriggersThatMeddle: where a trigger of the table's own writes other status or version
// than the call, or drops its row, the call is taken back and says so; or what it says is
// what the row holds.
func TestTriggersThatMeddle(t *testing.T) {
	for name, meddler := range meddlers {
		for _, k := range databases() {
			statements := meddler.of(k.name)
			if len(statements) == 0 {
				continue
			}
			for how, fire := range map[string]func(s *site, m *engine.Machine, call func(m *engine.Machine, id string), ids []string){"alone": fireAlone, "at once": fireAtOnce, "in a transaction": fireInTx} {
				t.Run(name+", "+k.name+", "+how, func(t *testing.T) {
					t.Parallel()
					s := bind(t, k.name, k.open(t), parse(t, attacked))
					s.t = t
					ids := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
					if !meddler.creates {
						for _, id := range ids {
							_, err := s.m.Create(t.Context(), engine.Row{"id": id})
							check(t, err)
						}
					}
					for _, text := range statements {
						_, err := s.db.ExecContext(t.Context(), text)
						check(t, err)
					}
					m, err := s.eng.Machine(t.Context(), s.m.Definition()) // which sees the triggers
					check(t, err)
					var said sync.Map
					fire(s, m, func(m *engine.Machine, id string) {
						var res engine.Result
						var err error
						if meddler.creates {
							res, err = m.Create(t.Context(), engine.Row{"id": id})
						} else {
							res, err = m.Fire(t.Context(), "pay", id, nil)
						}
						if err == nil && meddler.truly {
							said.Store(id, res)
							return
						}
						if err == nil || !strings.Contains(err.Error(), "a trigger of the table's own") || !strings.Contains(err.Error(), meddler.says) {
							t.Errorf("%s: %+v, %v; want an error about the trigger and %s", id, res, err, meddler.says)
						}
					}, ids)
					for _, id := range ids {
						res, applied := said.Load(id)
						switch {
						case applied:
							s.holds(id, res.(engine.Result).State, res.(engine.Result).Version, 2)
						case meddler.says == "":
							t.Errorf("%s: a trigger that does no harm must not stand in the way", id)
						case meddler.creates:
							s.holds(id, "", 0, 0)
						default:
							s.holds(id, "a", 1, 1)
						}
					}
				})
			}
		}
	}
}

// TestTriggerThatFailsLate: RAISE(FAIL) ends a statement with an error and keeps what it
// did, which an error that says "not applied" must not.
func TestTriggerThatFailsLate(t *testing.T) {
	t.Parallel()
	def := parse(t, "machine: bare\ntable: {name: bares}\njournal: false\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b}}\n")
	s := bind(t, "sqlite", openSQLite(t), def)
	ids := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
	for _, id := range ids {
		_, err := s.m.Create(t.Context(), engine.Row{"id": id})
		check(t, err)
	}
	_, err := s.db.ExecContext(t.Context(), "CREATE TRIGGER late AFTER UPDATE ON bares BEGIN SELECT RAISE(FAIL, 'too late'); END")
	check(t, err)
	m, err := s.eng.Machine(t.Context(), def)
	check(t, err)
	for _, fire := range []func(s *site, m *engine.Machine, call func(m *engine.Machine, id string), ids []string){fireAlone, fireAtOnce, fireInTx} {
		fire(s, m, func(m *engine.Machine, id string) {
			if _, err := m.Fire(t.Context(), "go", id, nil, engine.WithVersion(1)); err == nil || !strings.Contains(err.Error(), "too late") {
				t.Errorf("%s: %v, want the trigger's error", id, err)
			}
		}, ids)
		for _, id := range ids {
			if row, err := m.Get(t.Context(), id); err != nil || row.State != "a" || row.Version != 1 {
				t.Errorf("%s: %+v, %v", id, row, err)
			}
		}
	}
}

// The ways to make a call for each row.

func fireAlone(_ *site, m *engine.Machine, call func(m *engine.Machine, id string), ids []string) {
	for _, id := range ids {
		call(m, id)
	}
}

func fireAtOnce(_ *site, m *engine.Machine, call func(m *engine.Machine, id string), ids []string) {
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() { call(m, id) })
	}
	wg.Wait()
}

func fireInTx(s *site, m *engine.Machine, call func(m *engine.Machine, id string), ids []string) {
	for _, id := range ids {
		_ = s.eng.InTx(s.t.Context(), func(_ context.Context, tx engine.Tx) error {
			call(m.In(tx), id)
			return nil
		})
	}
}

// holds checks where a row stands, and how many entries it has; no row where state is "".
func (s *site) holds(id, state string, version int64, entries int) {
	s.t.Helper()
	row, err := s.m.Get(s.t.Context(), id)
	if (state == "") != errors.Is(err, engine.ErrNotFound) || row.State != state || row.Version != version {
		s.t.Errorf("%s is %+v, %v; want %s, version %d", id, row, err, state, version)
	}
	log, err := s.m.Journal(s.t.Context(), id)
	if err != nil || len(log) != entries || (entries > 0 && (log[entries-1].To != state || log[entries-1].Version != version)) {
		s.t.Errorf("%s has %d entries %+v, %v; want %d that end there", id, len(log), log, err, entries)
	}
}
