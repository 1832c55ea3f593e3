// The Bisquitt gateway with what shapes a measurement as options: its own command fixes the retry interval and count.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/energomonitor/bisquitt/gateway"
	"github.com/energomonitor/bisquitt/topics"
	"github.com/energomonitor/bisquitt/util"
)

const module = "github.com/energomonitor/bisquitt"

func main() {
	listen := flag.String("listen", "", "UDP address for MQTT-SN clients")
	broker := flag.String("broker", "", "TCP address of the MQTT broker")
	topicsFile := flag.String("topics", "", "YAML file of predefined topics")
	retryInterval := flag.Duration("retry-interval", 0, "Tretry towards clients")
	retries := flag.Uint("retries", 0, "Nretry towards clients")
	brokerTimeout := flag.Duration("broker-timeout", 0, "time limit of a connection to the broker")
	verbose := flag.Bool("verbose", false, "log every packet")
	version := flag.Bool("version", false, "print Bisquitt's version")
	flag.Parse()
	if *version {
		fmt.Println("bisquitt", moduleVersion(), "altered as docs/mqttsn.md says, built by", runtime.Version())
		return
	}
	address, err := net.ResolveTCPAddr("tcp", *broker)
	exitOn(err)
	predefined, err := topics.ReadPredefinedTopicsFile(*topicsFile)
	exitOn(err)
	logger := util.NewProductionLogger("gateway")
	if *verbose {
		logger = util.NewDebugLogger("gateway")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	exitOn(gateway.NewGateway(logger, &gateway.GatewayConfig{
		MqttBrokerAddress:     address,
		MqttConnectionTimeout: *brokerTimeout,
		PredefinedTopics:      predefined,
		RetryDelay:            *retryInterval,
		RetryCount:            *retries,
	}).ListenAndServe(ctx, *listen))
}

func moduleVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "unknown"
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bisquitt:", err)
		os.Exit(1)
	}
}
