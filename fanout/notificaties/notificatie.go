package notificaties

// publishRoutes are those of publishers.
func (s *Server) publishRoutes() []route { return nil }

// deliveryMode is the form of requests to a subscriber.
func deliveryMode(cloudEvents bool) string {
	if cloudEvents {
		return "structured"
	}
	return "plain"
}
