"""What is beside the answers: API calls, and figures of whole arms or of many questions."""
