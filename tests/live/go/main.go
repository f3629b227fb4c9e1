// One member of a group over franz-go, until a line comes on stdin or stdin ends; says what client.py says.
//
// franz-go-member '{"group_id": .., "client_id": .., ..}' topic ..
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"groupledger/tests/member"
)

var balancers = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

func main() {
	asked, topics := member.Asked()
	client, err := kgo.NewClient(options(asked, topics)...)
	member.Must(err)
	for polling := member.Ready(); polling.Err() == nil; {
		client.PollFetches(polling)
	}
	if asked.Commits {
		member.Must(client.CommitUncommittedOffsets(context.Background()))
	}
	client.Close()
}

func options(told member.Settings, topics []string) []kgo.Opt {
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
		memberID, _ := client.GroupMetadata()
		member.Tell(name, memberID, partitions)
	}
}
