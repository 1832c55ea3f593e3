// Package util: this file takes the place of Bisquitt's util/conn_with_context.go when it is built.
//
// It differs in three things. A cancelled context wakes a blocked Read or Write at once, where Bisquitt's looks for it ten
// times a second on every connection: in virtual time each look costs wall time. A connection to the broker begins with
// CONNECT, as MQTT 3.1.1 section 3.1 demands: for a client that only ever publishes with QoS -1, Bisquitt sends PUBLISH
// first, and the broker hangs up. And SUBSCRIBE goes without DUP, which MQTT has not there (section 3.8.1): when a client
// repeats one, Bisquitt hands its DUP on, and the broker hangs up.
package util

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	packetTypeConnect   = 1 // MQTT 3.1.1, table 2.1; in the upper four bits of the first byte
	packetTypeSubscribe = 8
	flagDup             = 1 << 3
)

// MQTT 3.1.1 CONNECT with a clean session, no keep-alive and an empty client id, in place of which the broker makes one up.
var anonymousConnect = []byte{packetTypeConnect << 4, 12, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, 0}

// ConnWithContext is a connection whose calls end with a context.
type ConnWithContext struct {
	conn    net.Conn
	ctx     context.Context
	opening sync.Once
}

// NewConnWithContext wraps conn. The third argument, the time between two looks in Bisquitt's version, is not needed.
func NewConnWithContext(ctx context.Context, conn net.Conn, _ time.Duration) *ConnWithContext {
	go func() {
		<-ctx.Done()
		conn.SetDeadline(time.Unix(1, 0)) // long past: what blocks returns
	}()
	return &ConnWithContext{conn: conn, ctx: ctx}
}

func (c *ConnWithContext) Read(p []byte) (int, error) {
	n, err := c.conn.Read(p)
	return n, c.explain(err)
}

func (c *ConnWithContext) Write(p []byte) (int, error) {
	_, isBroker := c.conn.(*net.TCPConn)
	var err error
	c.opening.Do(func() {
		if isBroker && p[0]>>4 != packetTypeConnect {
			_, err = c.conn.Write(anonymousConnect)
		}
	})
	if err != nil {
		return 0, c.explain(err)
	}
	if isBroker && p[0]>>4 == packetTypeSubscribe {
		p[0] &^= flagDup
	}
	n, err := c.conn.Write(p)
	return n, c.explain(err)
}

func (c *ConnWithContext) explain(err error) error {
	if err != nil && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return err
}

// Close closes the connection.
func (c *ConnWithContext) Close() error {
	return c.conn.Close()
}
