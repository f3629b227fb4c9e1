// One member of a classic group over Sarama, until a line comes on stdin or stdin ends; says what client.py says.
//
// sarama-member '{"group_id": .., "client_id": .., ..}' topic ..
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

// settings are those of members.py; what a group of this library does not need is left out.
type settings struct {
	Address   string  `json:"address"`
	GroupID   string  `json:"group_id"`
	ClientID  string  `json:"client_id"`
	Assignor  string  `json:"assignor"`
	SessionMS int     `json:"session_ms"`
	Instance  *string `json:"instance"`
}

type call struct {
	Call       string  `json:"call"`
	MS         int64   `json:"ms"`
	MemberID   string  `json:"member_id"`
	Partitions [][]any `json:"partitions"`
}

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

type telling struct{}

func (telling) Setup(session sarama.ConsumerGroupSession) error {
	tell("assigned", session)
	return nil
}

func (telling) Cleanup(session sarama.ConsumerGroupSession) error {
	tell("revoked", session)
	return nil
}

func (telling) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}

func main() {
	var told settings
	must(json.Unmarshal([]byte(os.Args[1]), &told))
	group, err := sarama.NewConsumerGroup([]string{told.Address}, told.GroupID, told.config())
	must(err)
	fmt.Println(`{"call": "ready"}`)
	polling, stop := context.WithCancel(context.Background())
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		stop()
	}()
	for polling.Err() == nil {
		if err := group.Consume(polling, os.Args[2:], telling{}); err != nil {
			fmt.Fprintln(os.Stderr, err) // a rebalance that failed: the next turn joins again
			time.Sleep(200 * time.Millisecond)
		}
	}
	must(group.Close())
}

func (told settings) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.ClientID = told.ClientID
	config.Metadata.RefreshFrequency = 500 * time.Millisecond
	config.Consumer.Group.Session.Timeout = time.Duration(told.SessionMS) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[told.Assignor]()}
	config.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	if told.Instance != nil {
		config.Consumer.Group.InstanceId = *told.Instance
	}
	return config
}

func tell(name string, session sarama.ConsumerGroupSession) {
	said := call{Call: name, MS: time.Now().UnixMilli(), MemberID: session.MemberID(), Partitions: [][]any{}}
	for topic, numbers := range session.Claims() {
		for _, number := range numbers {
			said.Partitions = append(said.Partitions, []any{topic, number})
		}
	}
	line, err := json.Marshal(said)
	must(err)
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
