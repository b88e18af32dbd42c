// Package faultproxy is a TCP proxy that breaks connections between a client and a
// database server, for tests. It knows no protocol: what a client sends in one piece
// is a request, and the first bytes that come back say that the server has acted.
package faultproxy

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Mode is what happens to one request.
type Mode uint8

// The modes.
const (
	// Pass hands the request and its answer through.
	Pass Mode = iota
	// CutBefore closes the connection; the server never sees the request.
	CutBefore
	// CutAfter closes the connection when the server has answered; the client never
	// sees the answer.
	CutAfter
	// Delay holds the request back for a while.
	Delay
	// Swallow loses the request, and everything after it, and leaves the connection
	// open: nothing answers any more.
	Swallow
	// SwallowAnswer lets the server act and loses its answer and everything after it.
	SwallowAnswer
)

// Plan says how often what happens, as shares of all requests.
type Plan struct {
	CutBefore, CutAfter, Delay, Swallow, SwallowAnswer float64
	// DelayFor is how long a delayed request is held.
	DelayFor time.Duration
	// Skip is how many requests of each connection pass first: its handshake.
	Skip int
}

// Counts says how often what happened.
type Counts struct{ Requests, Before, After, Delayed, Swallowed int }

// Proxy is one listening proxy.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	plan   Plan
	next   []Mode
	rng    *rand.Rand
	counts Counts
	links  map[*link]bool
	closed bool
}

// Start listens on a free local port and forwards to target ("127.0.0.1:5432"). Close
// it. The seed makes the choices repeatable.
func Start(ctx context.Context, target string, seed uint64) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: listener, rng: rand.New(rand.NewPCG(seed, 1)), links: map[*link]bool{}} //nolint:gosec // repeatable, not secret
	p.wg.Add(1)
	go p.accept()
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port is the port of Addr.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Set replaces the plan; the zero Plan passes everything.
func (p *Proxy) Set(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Next decides over the next requests, whoever sends them, before the plan does.
// Requests of a handshake do not count.
func (p *Proxy) Next(modes ...Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = append(p.next, modes...)
}

// Counts says what happened so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// CutAll closes every connection at once.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Freeze is a network that died: no connection closes, and nothing passes any more, on
// the connections there are nor on new ones. Set ends it for new connections.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.next = Plan{Swallow: 1}, nil
	for l := range p.links {
		l.mu.Lock()
		l.mute = true
		l.mu.Unlock()
	}
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{p: p, client: client, server: server, done: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			l.close()
		}
		p.links[l] = true
		p.mu.Unlock()
		p.wg.Add(2)
		go l.requests()
		go l.answers()
	}
}

// decide picks what happens to a request.
func (p *Proxy) decide(nth int) (Mode, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if nth <= p.plan.Skip {
		return Pass, 0
	}
	p.counts.Requests++
	mode := p.draw()
	switch mode {
	case CutBefore:
		p.counts.Before++
	case CutAfter:
		p.counts.After++
	case Delay:
		p.counts.Delayed++
	case Swallow, SwallowAnswer:
		p.counts.Swallowed++
	case Pass:
	}
	return mode, p.plan.DelayFor
}

func (p *Proxy) draw() Mode {
	if len(p.next) > 0 {
		mode := p.next[0]
		p.next = p.next[1:]
		return mode
	}
	x := p.rng.Float64()
	for _, c := range []struct {
		share float64
		mode  Mode
	}{{p.plan.CutBefore, CutBefore}, {p.plan.CutAfter, CutAfter}, {p.plan.Delay, Delay}, {p.plan.Swallow, Swallow}, {p.plan.SwallowAnswer, SwallowAnswer}} {
		if x < c.share {
			return c.mode
		}
		x -= c.share
	}
	return Pass
}

// link is one client's connection and its counterpart to the server.
type link struct {
	p              *Proxy
	client, server net.Conn
	done           chan struct{}
	once           sync.Once

	mu      sync.Mutex
	pending Mode // what happens to the next answer
	mute    bool // the client hears nothing any more
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (l *link) end() {
	l.close()
	l.p.mu.Lock()
	delete(l.p.links, l)
	l.p.mu.Unlock()
	l.p.wg.Done()
}

// requests forwards what the client sends.
func (l *link) requests() {
	defer l.end()
	buf := make([]byte, 64<<10)
	for nth := 1; ; nth++ {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		if !l.request(nth, buf[:n]) {
			return
		}
	}
}

// request forwards one request as decided; false ends the link.
func (l *link) request(nth int, data []byte) bool {
	mode, hold := l.p.decide(nth)
	switch mode {
	case CutBefore:
		return false
	case CutAfter, SwallowAnswer:
		l.mu.Lock()
		l.pending = mode
		l.mu.Unlock()
	case Delay:
		select {
		case <-time.After(hold):
		case <-l.done:
			return false
		}
	case Swallow:
		_, _ = io.Copy(io.Discard, l.client) // until the client gives up
		return false
	case Pass:
	}
	_, err := l.server.Write(data)
	return err == nil
}

// answers forwards what the server sends.
func (l *link) answers() {
	defer l.end()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			l.mu.Lock()
			mute := l.mute
			l.mu.Unlock()
			if mute { // the client must not learn that the server closed
				<-l.done
			}
			return
		}
		l.mu.Lock()
		if l.pending == SwallowAnswer {
			l.mute = true
		}
		cut, mute := l.pending == CutAfter, l.mute
		l.mu.Unlock()
		switch {
		case cut:
			return
		case mute:
			continue
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
