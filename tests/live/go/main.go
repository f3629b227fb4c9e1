// One member of a group over franz-go, until a line comes on stdin or stdin ends; says what client.py says.
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

// settings are those of members.py; what a group of this library does not need is left out.
type settings struct {
	Address   string  `json:"address"`
	GroupID   string  `json:"group_id"`
	ClientID  string  `json:"client_id"`
	Assignor  string  `json:"assignor"`
	SessionMS int     `json:"session_ms"`
	Instance  *string `json:"instance"`
	Protocol  string  `json:"protocol"`
	Commits   bool    `json:"commits"`
}

type call struct {
	Call       string  `json:"call"`
	MS         int64   `json:"ms"`
	MemberID   string  `json:"member_id"`
	Partitions [][]any `json:"partitions"`
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
	fmt.Println(`{"call": "ready"}`)
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
		kgo.SessionTimeout(time.Duration(told.SessionMS) * time.Millisecond),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(tells("assigned")),
		kgo.OnPartitionsRevoked(tells("revoked")),
		kgo.OnPartitionsLost(tells("lost")),
	}
	if told.Protocol == "consumer" { // the library takes part only where the context says so
		asked := context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
		options = append(options, kgo.WithContext(asked))
	}
	if told.Assignor != "" {
		options = append(options, kgo.Balancers(balancers[told.Assignor]()))
	}
	if told.Instance != nil {
		options = append(options, kgo.InstanceID(*told.Instance))
	}
	if !told.Commits {
		return append(options, kgo.DisableAutoCommit())
	}
	return append(options, kgo.AutoCommitInterval(500*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

func tells(name string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
		said := call{Call: name, MS: time.Now().UnixMilli(), Partitions: [][]any{}}
		said.MemberID, _ = client.GroupMetadata()
		for topic, numbers := range partitions {
			for _, number := range numbers {
				said.Partitions = append(said.Partitions, []any{topic, number})
			}
		}
		line, err := json.Marshal(said)
		must(err)
		fmt.Println(string(line))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
