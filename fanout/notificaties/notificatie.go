package notificaties

// publishRoutes are those of publishers.
func (s *Server) publishRoutes() []route { return nil }
