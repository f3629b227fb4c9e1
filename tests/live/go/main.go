// One member of a classic group over franz-go, until a line comes on stdin or stdin ends.
//
// franz-go-member '{"group_id": .., "client_id": .., ..}' topic ..
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// settings are those of members.py; what a classic group of this library does not need is left out.
type settings struct {
	Address   string  `json:"address"`
	GroupID   string  `json:"group_id"`
	ClientID  string  `json:"client_id"`
	Assignor  string  `json:"assignor"`
	SessionMS int     `json:"session_ms"`
	Instance  *string `json:"instance"`
	Commits   bool    `json:"commits"`
}

var balancers = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

func main() {
	var told settings
	must(json.Unmarshal([]byte(os.Args[1]), &told))
	client, err := kgo.NewClient(told.options(os.Args[2:])...)
	must(err)
	polling, stop := context.WithCancel(context.Background())
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		stop()
	}()
	for polling.Err() == nil {
		client.PollFetches(polling)
	}
	if told.Commits {
		must(client.CommitUncommittedOffsets(context.Background()))
	}
	client.Close()
}

func (told settings) options(topics []string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(told.Address),
		kgo.ConsumerGroup(told.GroupID),
		kgo.ClientID(told.ClientID),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(balancers[told.Assignor]()),
		kgo.SessionTimeout(time.Duration(told.SessionMS) * time.Millisecond),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(500 * time.Millisecond),
	}
	if told.Instance != nil {
		options = append(options, kgo.InstanceID(*told.Instance))
	}
	if !told.Commits {
		return append(options, kgo.DisableAutoCommit())
	}
	return append(options, kgo.AutoCommitInterval(500*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
